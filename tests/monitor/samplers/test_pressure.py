"""Pressure from the kernel's totals, and the run queue without the reading thread."""

import pytest
from monitor.samplers.machine import Machine, values

from tb_bottleneck.monitor.samplers.cpu import Pressure, RunQueue


def pressure(machine: Machine, kind: str, total_us: int) -> None:
    full = "full avg10=0.00 avg60=0.00 avg300=0.00 total=999999999\n"
    machine.write(f"proc/pressure/{kind}", f"some avg10=1.00 avg60=0.20 avg300=0.10 total={total_us}\n{full}")


def test_waiting_microseconds_become_a_share_of_time(machine: Machine) -> None:
    for kind in ("cpu", "io", "memory"):
        pressure(machine, kind, 1_000_000)
    sampler = Pressure(machine.root, machine.clock)
    assert values(sampler) == {}
    machine.now += 2.0
    pressure(machine, "cpu", 1_500_000)
    pressure(machine, "io", 9_000_000)
    assert values(sampler) == pytest.approx({"cpu_pressure": 0.25, "io_pressure": 1.0, "memory_pressure": 0.0})
    assert sampler.missing() == {}


def test_a_kernel_without_pressure_says_what_it_would_need(machine: Machine) -> None:
    pressure(machine, "cpu", 5)
    missing = Pressure(machine.root).missing()
    assert missing.keys() == {"io_pressure", "memory_pressure"}
    assert "psi=1" in missing["io_pressure"]


def test_the_queue_is_without_ourselves(machine: Machine) -> None:
    machine.write("proc/stat", "cpu  1 2 3\nprocesses 100\nprocs_running 9\nprocs_blocked 1\n")
    assert values(RunQueue(machine.root)) == {"run_queue": 8}
    assert RunQueue(machine.root).missing() == {}


def test_another_system_has_no_queue(machine: Machine) -> None:
    assert values(RunQueue(machine.root)) == {}
    assert "only Linux" in RunQueue(machine.root).missing()["run_queue"]
