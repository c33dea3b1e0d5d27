"""Tests facts about the CPU: its control groups, its usable cores from affinity and quotas, and its name."""

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


def machine(root: Path, cgroup: str = "", **files: str) -> Path:
    """Creates a fake machine under `root`: the text of /proc/self/cgroup, and files under /sys/fs/cgroup by path."""
    for path, text in {"proc/self/cgroup": cgroup, **{f"sys/fs/cgroup/{p}": t for p, t in files.items()}}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def quotas(root: Path) -> list[float]:
    return list(cpu.cgroup_quotas(root))


def test_version_2_quota_is_in_cores(tmp_path: Path) -> None:
    assert quotas(machine(tmp_path, "0::/job\n", **{"job/cpu.max": "250000 100000\n"})) == [2.5]


def test_version_2_without_a_limit_says_nothing(tmp_path: Path) -> None:
    assert quotas(machine(tmp_path, "0::/\n", **{"cpu.max": "max 100000\n"})) == []


def test_a_parents_quota_holds_too(tmp_path: Path) -> None:
    root = machine(
        tmp_path,
        "0::/slice/job\n",
        **{"slice/job/cpu.max": "max 100000\n", "slice/cpu.max": "400000 100000\n", "cpu.max": "800000 100000\n"},
    )
    assert quotas(root) == [4.0, 8.0]


def test_a_container_whose_path_only_the_host_sees_still_finds_its_quota(tmp_path: Path) -> None:
    root = machine(tmp_path, "0::/docker/3f2a\n", **{"cpu.max": "150000 100000\n"})
    assert quotas(root) == [1.5]


@pytest.mark.parametrize("mount", ["cpu", "cpu,cpuacct"])
def test_version_1_quota_under_either_name_of_the_mount(tmp_path: Path, mount: str) -> None:
    files = {f"{mount}/job/cpu.cfs_quota_us": "300000\n", f"{mount}/job/cpu.cfs_period_us": "100000\n"}
    assert quotas(machine(tmp_path, "4:memory:/job\n2:cpu,cpuacct:/job\n", **files)) == [3.0]


def test_version_1_minus_one_is_no_limit(tmp_path: Path) -> None:
    files = {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}
    assert quotas(machine(tmp_path, "1:cpu:/\n", **files)) == []


@pytest.mark.parametrize("text", ["", "many", "12", "0 100000", "5 0x", "1 2 3"])
def test_a_file_that_is_not_a_quota_is_no_quota(tmp_path: Path, text: str) -> None:
    assert quotas(machine(tmp_path, "0::/\n", **{"cpu.max": text})) == []


def test_a_path_that_climbs_out_is_not_followed(tmp_path: Path) -> None:
    root = machine(tmp_path, "0::/../../job\n", **{"cpu.max": "200000 100000\n"})
    (tmp_path / "sys/job").mkdir()
    (tmp_path / "sys/job/cpu.max").write_text("100000 100000\n")
    assert quotas(root) == [2.0]


def test_a_system_without_cgroups_has_no_quota(tmp_path: Path) -> None:
    assert quotas(tmp_path) == []


def test_usable_cores_are_the_smaller_of_affinity_and_quota(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(8)), raising=False)
    assert cpu.usable_cores(machine(tmp_path / "a", "0::/\n", **{"cpu.max": "350000 100000"})) == 3.5
    assert cpu.usable_cores(machine(tmp_path / "b", "0::/\n", **{"cpu.max": "6400000 100000"})) == 8
    whole = cpu.usable_cores(machine(tmp_path / "c", "0::/\n", **{"cpu.max": "400000 100000"}))
    assert whole == 4
    assert isinstance(whole, int)


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
