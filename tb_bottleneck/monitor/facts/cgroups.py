"""Finds the control groups that limit this process, versions 1 and 2. Linux only."""

from pathlib import Path, PurePosixPath


def cpu_groups(root: Path) -> list[Path]:
    """Returns the folders of the control groups with a CPU controller: the process's own first, then each parent."""
    return groups_of(root, "cpu")


def groups_of(root: Path, controller: str) -> list[Path]:
    """Returns the folders of the control groups with a controller: the process's own first, then each parent.

    In a container the path is often valid only on the host; then the root of the mount is the process's own group.
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
        elif controller in controllers.split(","):
            named = root / "sys/fs/cgroup" / controllers
            mounts.append((named if named.is_dir() else root / "sys/fs/cgroup" / controller, path))
    folders: list[Path] = []
    for mount, path in mounts:
        own = PurePosixPath(path.lstrip("/"))
        folders += [mount / part for part in (own, *own.parents) if ".." not in part.parts]
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]
