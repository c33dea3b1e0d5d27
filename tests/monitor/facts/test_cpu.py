"""Tests facts about the CPU: its control groups, its usable and physical cores, and its name."""

import os
from pathlib import Path

import pytest

from tb_bottleneck.monitor.facts import cpu
from tb_bottleneck.monitor.facts.cpu import cpu_groups


def groups(root: Path, cgroup: str, *folders: str) -> list[str]:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(cgroup)
    for folder in folders:
        (root / "sys/fs/cgroup" / folder).mkdir(parents=True, exist_ok=True)
    return [path.relative_to(root / "sys/fs/cgroup").as_posix() for path in cpu_groups(root)]


@pytest.mark.parametrize(
    ("cgroup", "folders", "found"),
    [
        ("0::/slice/job\n", ("slice/job",), ["slice/job", "slice", "."]),
        ("0::/docker/3f2a\n", (".",), ["."]),  # a path that only the host sees
        ("4:memory:/job\n2:cpu,cpuacct:/job\n", ("cpu,cpuacct/job",), ["cpu,cpuacct/job", "cpu,cpuacct"]),
        ("2:cpu,cpuacct:/job\n", ("cpu/job",), ["cpu/job", "cpu"]),
        ("0::/../../job\n", ("../job",), ["."]),
    ],
)
def test_own_first_then_each_parent(tmp_path: Path, cgroup: str, folders: tuple[str, ...], found: list[str]) -> None:
    assert groups(tmp_path, cgroup, *folders) == found


def test_a_system_without_them_has_none(tmp_path: Path) -> None:
    assert cpu_groups(tmp_path) == []


def test_usable_cores_where_the_system_has_no_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert cpu.usable_cores(tmp_path) == 6


def test_the_cpu_name_is_the_first_one(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\nmodel name\t: Quick 9000 @ 3 GHz\nmodel name\t: Other\n")
    assert cpu.cpu_name(tmp_path) == "Quick 9000 @ 3 GHz"
    (tmp_path / "proc/cpuinfo").write_text("processor\t: 0\nCPU part\t: 0xd0c\n")
    assert cpu.cpu_name(tmp_path) is None


def test_hyper_threads_of_one_core_are_one_physical_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 4}, raising=False)
    assert cpu.physical_cores(tmp_path) is None
    for number, siblings in {0: "0,4", 1: "1,5", 4: "0,4", 5: "1,5"}.items():
        file = tmp_path / f"sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list"
        file.parent.mkdir(parents=True)
        file.write_text(siblings + "\n")
    assert cpu.physical_cores(tmp_path) == 2
