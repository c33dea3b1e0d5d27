"""Facts about the CPU: its name, and how many cores this process may use.

Control groups, versions 1 and 2, may limit the cores of a process. They exist on Linux only.
"""

import math
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath


def cpu_groups(root: Path) -> list[Path]:
    """Returns the folders of the control groups that limit the CPU of this process: its own group first, then each
    parent. `root` contains `proc/` and `sys/`."""
    return groups_of(root, "cpu")


def groups_of(root: Path, controller: str) -> list[Path]:
    """Returns the folders of the control groups of this process with the controller `controller`, such as "cpu": its
    own group first, then each parent. `root` contains `proc/` and `sys/`.

    In a container, the path of the process's own group is often valid only on the host. The result then has only the
    root of the mount, which is the group of the process."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    mounts = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mounts.append((root / "sys/fs/cgroup", path))
        elif controller in controllers.split(","):
            named = root / "sys/fs/cgroup" / controllers
            mounts.append((named if named.is_dir() else root / "sys/fs/cgroup" / controller, path))
    folders: list[Path] = []
    for mount, path in mounts:
        own = PurePosixPath(path.lstrip("/"))
        folders += [mount / part for part in (own, *own.parents) if ".." not in part.parts]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def usable_cores(root: Path = Path("/")) -> float:
    """Returns the number of cores that this process may use: the number of cores in its affinity mask, or the smallest
    CPU quota of its control groups if that is less.

    `root` contains `proc/` and `sys/`. A quota may be a fraction of a core, which is rounded to 2 digits. A whole
    number is returned as int.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    cores = min([float(allowed), *cgroup_quotas(root)])
    return int(cores) if cores.is_integer() else round(cores, 2)


def physical_cores(root: Path = Path("/")) -> int | None:
    """Returns the number of physical cores that this process may use by its affinity; None if the system does not say.

    By default, torch starts one thread for each physical core, not for each hyper-thread. `root` contains `sys/`.
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    folder = root / "sys/devices/system/cpu"
    files = [folder / f"cpu{cpu}" / "topology/thread_siblings_list" for cpu in os.sched_getaffinity(0)]
    try:
        return len({file.read_text().strip() for file in files})
    except OSError:
        return None


def cgroup_quotas(root: Path = Path("/")) -> Iterator[float]:
    """Yields the CPU quotas of this process in cores: those of its own control group and of every parent, in version 2
    and in version 1. Groups without a quota are skipped. `root` contains `proc/` and `sys/`."""
    for folder in cpu_groups(root):
        for read in (_quota_v2, _quota_v1):
            try:
                quota = read(folder)
            except (OSError, ValueError):
                continue  # there is no quota of this version
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
    """Returns the processor's model name; None if the kernel does not report the name (some ARM boards).

    Raises OSError if `proc/cpuinfo` below `root` cannot be read."""
    for line in (root / "proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return value.strip()
    return None
