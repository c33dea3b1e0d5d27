"""Facts about the CPU: its name, and how many cores this process may use."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

from tb_bottleneck.monitor.facts.cgroups import cpu_groups


def usable_cores(root: Path = Path("/")) -> float:
    """Cores this process may really use: its affinity, or its cgroup's CPU quota where that is less.

    `root` is where `proc/` and `sys/` lie. A quota may be a fraction of a core; whole numbers are returned as int.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = min([float(allowed), *cgroup_quotas(root)])
    return int(cores) if cores.is_integer() else round(cores, 2)


def cgroup_quotas(root: Path = Path("/")) -> Iterator[float]:
    """The CPU quotas in cores that hold for this process: its own cgroup's and every parent's, versions 2 and 1."""
    for folder in cpu_groups(root):
        for read in (_quota_v2, _quota_v1):
            try:
                quota = read(folder)
            except (OSError, ValueError):
                continue  # this version has no quota here
            if math.isfinite(quota) and quota > 0:
                yield quota


def _quota_v2(folder: Path) -> float:
    quota, period = (folder / "cpu.max").read_text().split()
    return math.inf if quota == "max" else int(quota) / int(period)


def _quota_v1(folder: Path) -> float:
    quota = int((folder / "cpu.cfs_quota_us").read_text())
    period = int((folder / "cpu.cfs_period_us").read_text())
    return math.inf if quota < 0 or period <= 0 else quota / period


def cpu_name(root: Path = Path("/")) -> str | None:
    """The processor's model name as the kernel tells it; None where it does not (other systems, some ARM boards)."""
    for line in (root / "proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return value.strip()
    return None
