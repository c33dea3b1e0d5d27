"""The resources of this process."""

import os
from pathlib import Path

import pytest
from monitor.samplers.machine import Machine, values

from tb_bottleneck.monitor.samplers import processes


def test_processor_seconds_become_cores(machine: Machine) -> None:
    spent = iter([10.0, 13.0])
    sampler = processes.OwnProcess(machine.clock, lambda: next(spent))
    assert "process_cores" not in values(sampler)
    machine.now += 2.0
    assert values(sampler)["process_cores"] == 1.5


def test_a_process_that_runs_has_a_thread_and_is_put_off_now_and_then() -> None:
    found = values(processes.OwnProcess())
    assert found["process_threads"] >= 1
    assert found["involuntary_switches_total"] >= 0


@pytest.mark.parametrize(
    ("text", "waited"), [("9000 4000 12\n", 4000.0), ("0 0 0\n", None), ("", None)], ids=["counted", "not built", "odd"]
)
def test_the_time_in_which_the_main_thread_waits_for_a_core(machine: Machine, text: str, waited: float | None) -> None:
    machine.write(f"proc/{os.getpid()}/schedstat", text)
    sampler = processes.OwnProcess(root=machine.root)
    assert values(sampler).get("core_wait_total") == waited
    assert ("core_wait_total" in sampler.missing()) == (waited is None)


def test_windows_counts_neither_switches_nor_waits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(processes, "resource", None)
    sampler = processes.OwnProcess(root=tmp_path)
    assert values(sampler).keys() == {"process_threads"}
    assert sampler.missing().keys() == {"involuntary_switches_total", "core_wait_total", "process_read"}
