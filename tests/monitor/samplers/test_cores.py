"""Busy cores from each core's times since the last reading."""

from collections import namedtuple

import psutil
import pytest
from monitor.samplers.machine import Machine, values

from tb_bottleneck.monitor.samplers.cpu import Cores, UsableCores

Core = namedtuple("Core", "user nice system idle iowait irq softirq steal guest guest_nice", defaults=[0.0] * 10)
Elsewhere = namedtuple("Elsewhere", "user system idle interrupt dpc")


def cores(*readings: list[object]) -> list[dict[str, float]]:
    waiting = iter(readings)
    sampler = Cores(lambda: next(waiting))
    return [values(sampler) for _ in readings]


def test_one_core_busy_and_one_half() -> None:
    found = cores([Core(), Core()], [Core(user=0.5, system=0.5), Core(user=0.25, softirq=0.25, idle=0.5)])
    assert found == [{}, {"cpu_busy_cores": 1.5, "cpu_top_core": 1.0}]


def test_waiting_for_storage_and_time_that_was_stolen_is_no_work() -> None:
    assert cores([Core()], [Core(user=0.2, iowait=0.4, steal=0.4)])[1]["cpu_busy_cores"] == pytest.approx(0.2)


def test_time_of_guests_is_counted_once() -> None:
    assert cores([Core()], [Core(user=1.0, guest=1.0)])[1]["cpu_busy_cores"] == 1.0


def test_time_in_interrupts_lies_within_system_time_on_windows() -> None:
    found = cores([Elsewhere(0, 0, 0, 0, 0)], [Elsewhere(0.25, 0.25, 0.5, 0.1, 0.1)])
    assert found[1]["cpu_busy_cores"] == 0.5


def test_a_core_that_came_or_went_begins_anew() -> None:
    assert cores([Core()], [Core(user=1), Core(user=1)], [Core(user=2), Core(user=1, idle=1)])[1:] == [
        {},
        {"cpu_busy_cores": 1.0, "cpu_top_core": 1.0},
    ]


def test_readings_within_one_tick_give_nothing() -> None:
    assert cores([Core(user=1)], [Core(user=1)])[1] == {}


def test_this_machine_has_no_more_busy_cores_than_cores() -> None:
    sampler = Cores()
    values(sampler)
    for _ in range(1_000_000):
        pass
    found = values(sampler)
    assert 0 <= found.get("cpu_top_core", 0) <= 1
    assert found.get("cpu_busy_cores", 0) <= (psutil.cpu_count() or 1)


def test_usable_cores_are_the_quotas_where_that_is_less(machine: Machine) -> None:
    machine.write("proc/self/cgroup", "0::/job\n")
    machine.write("sys/fs/cgroup/job/cpu.max", "50000 100000\n")
    assert values(UsableCores(machine.root)) == {"cpu_usable_cores": 0.5}
