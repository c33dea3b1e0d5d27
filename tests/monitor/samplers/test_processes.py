"""Tests of the resources of this process, and of its descendants from a fake /proc and real ones.

Both implementations give equal results.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from monitor.machine import Machine, values

from tb_bottleneck.monitor.samplers import processes
from tb_bottleneck.monitor.samplers.processes import LinuxProcessTree, PsutilProcessTree


def process(
    machine: Machine, pid: int, children: str = "", name: str = "python", ticks: int = 0, began: int = 5
) -> None:
    machine.write(f"proc/{pid}/task/{pid}/children", children)
    fields = ["S", "1", *["0"] * 9, str(ticks), str(ticks), *["0"] * 6, str(began), "0", "0"]
    machine.write(f"proc/{pid}/stat", f"{pid} ({name}) {' '.join(fields)}\n")
    machine.write(f"proc/{pid}/cmdline", "python\0train.py\0")


def test_children_and_their_children(machine: Machine) -> None:
    process(machine, 1, "2 3 ")
    process(machine, 2, "4 ")
    process(machine, 3, name="a) (b", ticks=50)
    process(machine, 4)
    found = {one.pid: one for one in LinuxProcessTree(machine.root, 1).descendants()}
    assert {pid: one.parent for pid, one in found.items()} == {2: 1, 3: 1, 4: 2}
    assert found[3].name == "a) (b"
    assert found[3].cpu_s == pytest.approx(100 / os.sysconf("SC_CLK_TCK"))


def test_a_child_that_has_just_ended_is_left_out(machine: Machine) -> None:
    process(machine, 1, "2 3 ")
    process(machine, 3)
    assert [one.pid for one in LinuxProcessTree(machine.root, 1).descendants()] == [3]


def test_a_command_line_in_words(machine: Machine) -> None:
    process(machine, 1)
    assert LinuxProcessTree(machine.root, 1).command(1) == ("python", "train.py")
    assert LinuxProcessTree(machine.root, 1).command(2) == ()


def test_a_kernel_that_lists_no_children_is_known(machine: Machine) -> None:
    machine.write("proc/1/stat", "1 (init) S")
    assert not LinuxProcessTree(machine.root, 1).is_available()


@pytest.mark.skipif(not LinuxProcessTree().is_available(), reason="this system lists no children")
def test_both_ways_see_the_same_child() -> None:
    code = "print(); input()"
    with subprocess.Popen([sys.executable, "-uc", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        child.stdout.readline()  # before that it may not have become another program yet
        try:
            for way in (LinuxProcessTree(), PsutilProcessTree()):
                assert [one.parent for one in way.descendants() if one.pid == child.pid] == [os.getpid()]
                assert way.command(child.pid)[-1] == code
        finally:
            child.communicate(b"\n")


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
