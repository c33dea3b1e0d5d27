"""Rates of counters, and disks on systems other than Linux. A counter without a comparable last value has no rate."""

from collections import namedtuple

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from monitor.machine import Machine, values

from tb_bottleneck.monitor.samplers.io import Disks, Rates


class Hand:
    """A manual clock."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_first_reading_of_a_counter_gives_nothing() -> None:
    clock = Hand()
    rates = Rates(clock)
    assert rates.per_second({"a": 10.0}) == {}
    clock.now = 2.0
    assert rates.per_second({"a": 16.0, "b": 5.0}) == {"a": 3.0}


def test_a_counter_that_was_reset_is_left_out_once() -> None:
    clock = Hand()
    rates = Rates(clock)
    for now, value, found in [(0, 100, {}), (1, 5, {}), (2, 8, {"a": 3.0})]:
        clock.now = now
        assert rates.per_second({"a": value}) == found


def test_a_counter_that_was_away_begins_anew() -> None:
    clock = Hand()
    rates = Rates(clock)
    rates.per_second({"a": 1.0})
    clock.now = 1.0
    rates.per_second({})
    clock.now = 2.0
    assert rates.per_second({"a": 100.0}) == {}


def test_no_time_between_gives_nothing() -> None:
    rates = Rates(lambda: 7.0)
    rates.per_second({"a": 1.0})
    assert rates.per_second({"a": 2.0}) == {}


@given(st.lists(st.tuples(st.floats(0.1, 10), st.floats(0, 1e9)), min_size=1, max_size=20))
def test_rates_times_time_add_up_to_the_counter(steps: list[tuple[float, float]]) -> None:
    clock, counter, total = Hand(), 0.0, 0.0
    rates = Rates(clock)
    rates.per_second({"a": counter})
    for seconds, grown in steps:
        clock.now += seconds
        counter += grown
        found = rates.per_second({"a": counter})
        total += found["a"] * seconds
    assert total == pytest.approx(counter, rel=1e-6, abs=1e-3)


def test_elsewhere_psutil_counts(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    counters = namedtuple("counters", "read_bytes write_bytes")
    totals = iter([{"disk0": counters(0, 0)}, {"disk0": counters(600, 60)}, {"disk0": counters(600, 60)}])
    monkeypatch.setattr(psutil, "disk_io_counters", lambda perdisk: next(totals))
    sampler = Disks(machine.root, machine.clock)
    values(sampler)
    machine.now += 2.0
    assert values(sampler) == {"disk_read": 300.0, "disk_written": 30.0}
    assert sampler.missing() == {"disk_busy": "the system does not count the busy time of its disks"}


def test_no_disk_at_all_elsewhere(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "disk_io_counters", lambda perdisk: None)
    assert values(Disks(machine.root)) == {}
