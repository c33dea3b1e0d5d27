"""The control groups whose limits on the CPU hold for this process: version 2's, and version 1's. Linux only."""

from pathlib import Path, PurePosixPath


def cpu_groups(root: Path) -> list[Path]:
    """The folders of the control groups whose quotas hold for this process, its own first, then each parent.

    In a container the path is often one that only the host sees; the mount's root then is its own group.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    mounts = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            mounts.append((root / "sys/fs/cgroup", path))
        elif "cpu" in controllers.split(","):
            named = root / "sys/fs/cgroup" / controllers
            mounts.append((named if named.is_dir() else root / "sys/fs/cgroup/cpu", path))
    folders: list[Path] = []
    for mount, path in mounts:
        own = PurePosixPath(path.lstrip("/"))
        folders += [mount / part for part in (own, *own.parents) if ".." not in part.parts]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]
