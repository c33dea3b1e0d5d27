"""Tests which setting varies in a series of runs, and since which run and in which regime a series is slower."""

import numpy as np
from comparison.drawn_runs import A100, H200, context, judged, repeated

from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.comparison.series.explanations import (
    HISTORY,
    SETTINGS,
    SWEEP,
    number_of,
    regression_point_of,
    varying_setting_of,
)

STEP = repeated(9, workers="####....", gpu="....####")
ALONE = repeated(9, loader="####....", gpu="....####")


def varied(tmp_path, *contexts, drawing=STEP, **header):
    return varying_setting_of([judged(tmp_path, drawing, tb_bottleneck=context(**one), **header) for one in contexts])


def test_a_number_that_alone_differs_makes_a_sweep(tmp_path):
    found = varied(tmp_path, {"torch_threads": 1}, {"torch_threads": 8})
    assert (found.kind, found.title, found.values) == (SWEEP, "threads per operator", ("1", "8"))


def test_what_follows_from_it_takes_nothing_from_it(tmp_path):
    found = varied(tmp_path, {"workers": 0}, {"workers": 4, "prefetch_factor": 2}, {"workers": 4, "prefetch_factor": 4})
    assert (found.kind, found.title) == (SWEEP, "workers")
    found = varied(tmp_path, {"workers": 1, "prefetch_factor": 2}, {"workers": 4, "prefetch_factor": 4})
    assert (found.kind, found.title) == (SWEEP, "workers")


def test_another_library_beside_it_makes_it_no_sweep(tmp_path):
    found = varied(tmp_path, {"workers": 1, "torch": "2.4"}, {"workers": 4, "torch": "2.6"})
    assert found.kind == HISTORY
    assert set(found.differ) == {"torch", "workers"}


def test_a_fact_that_is_not_swept_makes_a_history(tmp_path):
    assert varied(tmp_path, {"torch": "2.4"}, {"torch": "2.6"}).kind == HISTORY


def test_a_clock_that_was_read_twice_is_one_clock(tmp_path):
    found = varied(tmp_path, {"workers": 1, "core_hz": 2.41e9}, {"workers": 2, "core_hz": 2.4e9})
    assert found.kind == SWEEP


def test_devices_are_settings_and_bring_their_own_numbers(tmp_path):
    found = varying_setting_of([judged(tmp_path, STEP, device=device) for device in (A100, H200, A100)])
    assert (found.kind, found.title) == (SETTINGS, "device")
    assert found.values[0] == found.values[2] == "NVIDIA A100-SXM4-80GB"


def test_a_device_without_a_name_is_no_other_device(tmp_path):
    """The public recordings of one training by two versions of torch: the older one names no device."""
    unnamed = [judged(tmp_path, drawing, device={"id": 0}) for drawing in (STEP, ALONE)]
    named = [judged(tmp_path, drawing) for drawing in (STEP, ALONE)]
    found = varying_setting_of([*unnamed, *named])
    assert (found.kind, found.title) == (SETTINGS, "data loading")
    assert found.values == ("by workers", "in the training process") * 2


def test_only_finite_numbers_are_numbers():
    assert number_of("4") == 4.0
    assert number_of("nan") is None
    assert number_of("many") is None


def row(*steps, jitter=0.01):
    """Returns runs with steps of about this many ms: up to 10 ms `compute`, the rest `sync`."""
    rng = np.random.default_rng(3)
    times, accounts = [], []
    for ms in steps:
        one = rng.normal(ms * 1e6, ms * 1e6 * jitter, 8)
        times.append(one)
        account = dict.fromkeys(REGIMES, 0.0) | {"compute": 10e6}
        accounts.append(account | {"sync": float(one.mean()) - 10e6})
    return regression_point_of([f"run{number}" for number in range(len(steps))], times, accounts, "step")


def test_the_first_slower_run_and_the_regime_that_grew():
    found = row(10.5, 10.4, 10.6, 14.0, 13.9)
    assert (found.last_good, found.since, found.regime) == ("run2", "run3", "sync")
    assert 1.3 < found.slowdown < 1.36
    assert "run3" in found.because
    assert "host waits for the device" in found.because


def test_noise_is_no_regression():
    assert row(10.5, 10.6, 10.4, 10.7, 10.5, jitter=0.05) is None


def test_a_change_of_less_than_a_twentieth_is_not_told():
    assert row(10.5, 10.5, 10.8, 10.8) is None


def test_a_faster_run_is_no_regression():
    assert row(14.0, 14.0, 10.5, 10.5) is None


def test_a_gain_does_not_hide_the_loss_after_it():
    """The best split is where the runs got faster; a later loss is found among the runs since then."""
    found = row(20.0, 20.0, 10.5, 10.5, 14.0, 14.0)
    assert (found.last_good, found.since) == ("run3", "run4")
    assert "1.33 times what it was from run2 to run3 (10.5 ms to 14" in found.because


def test_a_recovered_loss_is_no_regression():
    assert row(10.5, 10.5, 20.0, 20.0, 10.5, 10.5, 10.5, 10.5, 10.5) is None
