"""Tests of the rates of counters, and that hardware block devices and network traffic are counted once.

A counter without a comparable last value has no rate.
"""

from collections import namedtuple

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from monitor.samplers.machine import Machine, values

from tb_bottleneck.monitor.samplers.io import Disks, Network, Rates


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


def line(name: str, sectors_read: int, sectors_written: int, busy_ms: int) -> str:
    return f" 254 0 {name} 7 1 {sectors_read} 8 5 7 {sectors_written} 9 0 {busy_ms} 19 7 3 2 1 1 1\n"


def disks(machine: Machine, *lines: str) -> None:
    machine.write("proc/diskstats", "".join(lines))


def test_two_disks_a_partition_and_a_mapping(machine: Machine) -> None:
    for name in ("vda", "nvme0n1"):
        machine.write(f"sys/block/{name}/device/model")
    machine.write("sys/block/dm-0/dm/name")
    names = ("vda", "vda1", "nvme0n1", "dm-0")
    disks(machine, *(line(name, 0, 0, 0) for name in names))
    sampler = Disks(machine.root, machine.clock)
    assert values(sampler) == {}
    machine.now += 2.0
    disks(machine, *(line(name, 2000, 500, busy) for name, busy in zip(names, (200, 200, 1500, 1700), strict=True)))
    assert values(sampler) == pytest.approx(
        {"disk_read": 2 * 2000 * 512 / 2, "disk_written": 2 * 500 * 512 / 2, "disk_busy": 0.75}
    )
    assert sampler.missing() == {}


def test_a_disk_with_many_requests_at_once_is_busy_at_most_all_the_time(machine: Machine) -> None:
    machine.write("sys/block/vda/device/model")
    disks(machine, line("vda", 0, 0, 0))
    sampler = Disks(machine.root, machine.clock)
    values(sampler)
    machine.now += 1.0
    disks(machine, line("vda", 0, 0, 5000))
    assert values(sampler)["disk_busy"] == 1.0


def test_a_machine_without_disks_says_so(machine: Machine) -> None:
    disks(machine, line("loop0", 0, 0, 0))
    assert Disks(machine.root).missing().keys() == {"disk_read", "disk_written", "disk_busy"}


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


Io = namedtuple("Io", "bytes_recv bytes_sent")


def network(machine: Machine, before: dict[str, Io], after: dict[str, Io]) -> dict[str, float]:
    waiting = iter([before, after])
    sampler = Network(machine.root, lambda: next(waiting), machine.clock)
    assert values(sampler) == {}
    machine.now += 2.0
    return values(sampler)


def test_only_hardware_counts_where_there_is_any(machine: Machine) -> None:
    machine.write("sys/class/net/eth0/device/vendor")
    names = ("lo", "eth0", "docker0", "bond0")
    found = network(machine, {name: Io(0, 0) for name in names}, {name: Io(600, 60) for name in names})
    assert found == {"network_received": 300, "network_sent": 30}


def test_in_a_container_all_but_the_loopback_counts(machine: Machine) -> None:
    found = network(machine, {"lo": Io(0, 0), "eth0": Io(0, 0)}, {"lo": Io(900, 900), "eth0": Io(600, 60)})
    assert found == {"network_received": 300, "network_sent": 30}


def test_infiniband_counts_words_and_joins_in(machine: Machine) -> None:
    port = "sys/class/infiniband/mlx5_0/ports/1/counters"
    machine.write(f"{port}/port_rcv_data", "1000\n")
    machine.write(f"{port}/port_xmit_data", "N/A (no PMA)\n")
    sampler = Network(machine.root, lambda: {"eth0": Io(0, 0)}, machine.clock)
    values(sampler)
    machine.now += 1.0
    machine.write(f"{port}/port_rcv_data", "1500\n")
    assert values(sampler) == pytest.approx({"network_received": 2000, "network_sent": 0})


def test_no_network_is_missing_not_zero(machine: Machine) -> None:
    sampler = Network(machine.root, lambda: {"lo": Io(1, 1)})
    assert values(sampler) == {}
    assert sampler.missing().keys() == {"network_received", "network_sent"}
