"""Hardware block devices are counted, each once."""

from collections import namedtuple

import psutil
import pytest
from monitor.samplers.machine import Machine, values

from tb_bottleneck.monitor.samplers.io import Disks


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
