"""The control groups of this process: its own and every parent, and none outside."""

from pathlib import Path

import pytest

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
