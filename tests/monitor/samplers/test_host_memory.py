"""Memory in use is the memory that is not available to programs, of the machine or of a control group."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from monitor.samplers.machine import Machine, values

from tb_bottleneck.monitor.samplers.memory import HostMemory

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
