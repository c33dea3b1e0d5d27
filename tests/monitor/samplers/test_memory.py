"""Tests of the memory in use, of the machine or a control group, and of the memory of the process.

Memory in use is not available to programs; that of the process is resident, proportional, shared and pinned.
"""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from monitor.samplers.machine import Machine, values

from tb_bottleneck.monitor import accelerator
from tb_bottleneck.monitor.samplers.io import LEAST_S, SHARE, Seldom
from tb_bottleneck.monitor.samplers.memory import HostMemory, PinnedMemory, ProcessMemory, SharedMemory

MB = 1 << 20


def sampler_on(machine: Machine) -> HostMemory:
    return HostMemory(lambda: SimpleNamespace(total=1000 * MB, available=700 * MB, used=900 * MB), machine.root)


def test_caches_that_would_give_way_are_not_in_use(tmp_path: Path) -> None:
    assert values(sampler_on(Machine(tmp_path))) == pytest.approx(
        {"host_memory_used": 0.3, "host_memory_available": 700 * MB, "host_memory_total": 1000 * MB}
    )


@pytest.mark.parametrize("version", [1, 2])
def test_a_control_group_with_less_memory_left_counts(tmp_path: Path, version: int) -> None:
    machine = Machine(tmp_path)
    names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    folder = "sys/fs/cgroup/job" if version == 2 else "sys/fs/cgroup/memory/job"
    machine.write("proc/self/cgroup", "0::/job\n" if version == 2 else "5:memory:/job\n")
    for name, text in zip(names, (f"{100 * MB}\n", f"{90 * MB}\n"), strict=True):
        machine.write(f"{folder}/{name}", text)
    machine.write(f"{folder}/memory.stat", f"anon 5\ninactive_file {30 * MB}\n")
    assert values(sampler_on(machine)) == pytest.approx(
        {"host_memory_used": 0.6, "host_memory_available": 40 * MB, "host_memory_total": 100 * MB}
    )


@pytest.mark.parametrize("limit", ["max", str(1 << 62), "damaged"])
def test_a_control_group_without_a_limit_does_not_count(tmp_path: Path, limit: str) -> None:
    machine = Machine(tmp_path)
    machine.write("proc/self/cgroup", "0::/job\n")
    machine.write("sys/fs/cgroup/job/memory.max", limit)
    machine.write("sys/fs/cgroup/job/memory.current", "5")
    machine.write("sys/fs/cgroup/job/memory.stat", "")
    assert values(sampler_on(machine))["host_memory_used"] == pytest.approx(0.3)


ROLLUP = "55-7ff ---p 00000000 00:00 0 [rollup]\nRss:  900 kB\nPss:  500 kB\nPss_Dirty: 400 kB\nShared_Clean: 9 kB\n"


def test_the_proportional_size_is_read_seldom(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.write(f"proc/{os.getpid()}/smaps_rollup", ROLLUP)
    sampler = ProcessMemory(machine.root, machine.clock)
    first = values(sampler)
    assert first["process_pss"] == 500 * 1024
    assert first["process_memory"] > 1 << 20
    machine.now += LEAST_S - 1
    assert "process_pss" not in values(sampler)
    machine.now += 1
    assert "process_pss" in values(sampler)
    assert not sampler.missing()


def test_without_the_file_the_proportional_size_is_missing(tmp_path: Path) -> None:
    sampler = ProcessMemory(tmp_path)
    assert values(sampler).keys() == {"process_memory"}
    assert "smaps_rollup" in sampler.missing()["process_pss"]


def test_an_expensive_reading_is_made_less_often(tmp_path: Path) -> None:
    machine = Machine(tmp_path)

    def slow() -> int:
        machine.now += 0.2
        return 1

    seldom = Seldom(machine.clock)
    assert seldom.read(slow) == 1
    machine.now += 0.2 / SHARE - 1
    assert seldom.read(slow) is None
    machine.now += 1
    assert seldom.read(slow) == 1


def test_shared_memory_has_its_use_and_its_size(tmp_path: Path) -> None:
    (tmp_path / "dev/shm").mkdir(parents=True)
    facts = SimpleNamespace(f_blocks=100, f_bfree=40, f_bavail=40, f_frsize=4096)
    sampler = SharedMemory(tmp_path, lambda path: facts)
    assert values(sampler) == {"shared_memory_used": 60 * 4096, "shared_memory_total": 100 * 4096}
    assert not sampler.missing()


def test_a_system_without_shared_memory_says_so(tmp_path: Path) -> None:
    sampler = SharedMemory(tmp_path)
    assert values(sampler) == {}
    assert sampler.missing().keys() == {"shared_memory_used", "shared_memory_total"}


def test_pinned_memory_is_counted_once_a_device_is_in_use(monkeypatch) -> None:
    stats = {"allocated_bytes.current": 4096, "allocated_bytes.peak": 9999}
    cuda = SimpleNamespace(is_initialized=lambda: False, host_memory_stats=lambda: stats)
    monkeypatch.setitem(accelerator.sys.modules, "torch", SimpleNamespace(cuda=cuda))
    sampler = PinnedMemory()
    assert values(sampler) == {}
    assert "pinned_memory" in sampler.missing()
    cuda.is_initialized = lambda: True
    assert values(sampler) == {"pinned_memory": 4096}
    assert not sampler.missing()
    del cuda.host_memory_stats  # torch before 2.6
    assert values(sampler) == {}
