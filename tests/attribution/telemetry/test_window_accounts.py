"""The account from telemetry: for any signals, each window's shares sum to 1 and none is negative."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_bottleneck.attribution.telemetry.window_accounts import DeviceBounds, accounts_of, link_bandwidth
from tb_bottleneck.attribution.telemetry.window_signals import Signals
from tb_bottleneck.base.regime import DEVICE_REGIMES

SHARE = st.floats(0, 1) | st.just(float("nan"))


def window(**given: float) -> Signals:
    """Returns one window; signals that are not given are unknown."""
    unknown = dict.fromkeys(
        ("loader", "transfer", "phases", "outside", "span", "utilisation", "syncs", "allocations"), float("nan")
    )
    if "phases" in given:
        timed = (given.get("loader", 0.0), given.get("transfer", 0.0), given["phases"])
        given.setdefault("outside", max(1.0 - sum(part for part in timed if part == part), 0.0))
    values = {**unknown, "weight": 1.0, "tenants": 0.0, "interrupted": 0.0, **given}
    return Signals(**{name: np.array([value]) for name, value in values.items()})


def bounds(copying: float = float("nan"), **split: float) -> DeviceBounds:
    return DeviceBounds({name: np.array([split.get(name, 0.0)]) for name in DEVICE_REGIMES}, np.array([copying]), True)


def shares(signals: Signals, of: DeviceBounds | None = None, on_device: bool = True) -> dict[str, float]:
    account = accounts_of(signals, of or bounds(compute=1.0), on_device)
    return {regime: round(float(values[0]), 6) for regime, values in account.shares.items() if values[0] > 1e-9}


@given(
    st.fixed_dictionaries(dict.fromkeys(("loader", "transfer", "phases", "span", "utilisation"), SHARE)),
    st.floats(0, 1), st.floats(0, 5), SHARE, SHARE, st.booleans(),
)  # fmt: skip
def test_every_window_sums_to_one(times, tenants, interrupted, syncs, copying, on_device):
    signals = window(**times, tenants=tenants, interrupted=interrupted, syncs=syncs)
    shares_of = accounts_of(signals, bounds(copying, memory=0.3, compute=0.5), on_device).shares
    assert sum(float(values[0]) for values in shares_of.values()) == pytest.approx(1.0)
    assert min(float(values[0]) for values in shares_of.values()) >= 0.0


def test_a_wait_hidden_by_a_busy_device_costs_nothing():
    assert shares(window(loader=0.5, phases=0.5, span=1.0, utilisation=1.0, syncs=0)) == {"compute": 1.0}


def test_a_wait_costs_as_much_as_the_device_idles():
    account = shares(window(loader=0.5, phases=0.5, span=0.7, utilisation=0.7, syncs=0))
    assert account == {"input": 0.3, "compute": 0.7}


def test_gaps_inside_the_span_show_in_the_utilisation():
    signals = window(loader=0.0, transfer=0.0, phases=1.0, span=1.0, utilisation=0.4, syncs=0)
    assert shares(signals) == {"launch": 0.6, "compute": 0.4}


def test_waits_and_launches_cannot_be_distinguished():
    signals = window(loader=0.0, transfer=0.0, phases=1.0, span=1.0, utilisation=0.4, syncs=2)
    assert shares(signals) == {"compute": 0.4, "unexplained": 0.6}


def test_copies_take_no_longer_than_the_traffic_allows():
    signals = window(loader=0.0, transfer=0.5, phases=0.5, span=0.5, utilisation=0.5, syncs=0)
    assert shares(signals, bounds(copying=0.1, compute=1.0))["transfer"] == 0.1
    assert shares(signals, bounds(compute=1.0))["transfer"] == 0.5


def test_without_signals_the_window_is_unexplained():
    assert shares(window(loader=0.5, phases=0.5)) == {"unexplained": 1.0}


def test_a_phase_that_was_not_timed_does_not_count_as_python():
    """The forward pass of an unchanged script is not timed: time outside the other phases may belong to it."""
    signals = window(loader=0.1, phases=0.5, outside=float("nan"), span=0.6, utilisation=0.6, syncs=0)
    assert shares(signals) == {"input": 0.1, "compute": 0.6, "unexplained": 0.3}
    cpu = window(loader=0.2, phases=0.5, outside=float("nan"))
    assert shares(cpu, bounds(), on_device=False) == {"input": 0.2, "unexplained": 0.8}


def test_work_of_other_processes_is_not_attributed_to_the_run():
    account = shares(window(loader=0.0, phases=1.0, span=1.0, utilisation=1.0, tenants=0.3, syncs=0))
    assert account == {"compute": 0.7, "unexplained": 0.3}


def test_on_a_cpu_run_the_phases_are_the_work():
    account = shares(window(loader=0.3, transfer=0.0, phases=0.6, syncs=0), bounds(), on_device=False)
    assert account == {"input": 0.3, "host": 0.1, "unexplained": 0.6}


def test_the_bandwidth_of_a_link_is_known_by_generation():
    assert link_bandwidth(np.array([4.0, 5.0, 9.0]), np.array([16.0, 8.0, 16.0]))[:2] == pytest.approx(
        [31.5e9, 31.5e9], rel=0.01
    )
    assert np.isnan(link_bandwidth(np.array([9.0, np.nan]), np.array([16.0, 16.0]))).all()
