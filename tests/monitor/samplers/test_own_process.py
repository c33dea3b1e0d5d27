"""The resources of this process."""

import pytest
from monitor.samplers.machine import Machine, values

from tb_bottleneck.monitor.samplers import own_process


def test_processor_seconds_become_cores(machine: Machine) -> None:
    spent = iter([10.0, 13.0])
    sampler = own_process.OwnProcess(machine.clock, lambda: next(spent))
    assert "process_cores" not in values(sampler)
    machine.now += 2.0
    assert values(sampler)["process_cores"] == 1.5


def test_a_process_that_runs_has_a_thread_and_is_put_off_now_and_then() -> None:
    found = values(own_process.OwnProcess())
    assert found["process_threads"] >= 1
    assert found["involuntary_switches_total"] >= 0


def test_windows_counts_no_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_process, "resource", None)
    sampler = own_process.OwnProcess()
    assert values(sampler).keys() == {"process_threads"}
    assert sampler.missing().keys() == {"involuntary_switches_total"}
