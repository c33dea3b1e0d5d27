"""Facts about the storage of a data set: the file system and the kind of disk, never the path."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_NETWORK = ("nfs", "cifs", "smb", "9p", "ceph", "lustre", "beegfs", "gpfs", "glusterfs", "afs", "wekafs", "fuse.")
_MEMORY = ("tmpfs", "ramfs")
# A virtual disk does not tell which kind of disk stores its data: virtio reports "rotational" for any disk.
_VIRTUAL = ("vd", "xvd", "loop", "zram")
_PATHS = ("root", "data_dir", "path", "folder", "directory", "data_path", "root_dir", "img_dir", "image_dir")
_LISTS = ("samples", "imgs", "files", "paths", "filenames", "image_paths")
_USUAL = (*_PATHS, *_LISTS)
MAX_ATTRIBUTES = 50
MAX_WRAPPERS = 4
"""Maximum depth of nested data sets that are searched, such as a `Subset` of a `Subset`."""
MAX_LAYERS = 4
"""Maximum depth of stacked block devices, such as an encrypted volume on a RAID."""


def storage_facts(dataset: Any, system: Path = Path("/")) -> dict[str, object]:
    """Returns facts about the storage of `dataset`, without unknown ones. `system` contains `proc/` and `sys/`.

    `dataset_filesystem` is the type of the file system, such as `ext4`. `dataset_storage` is "rotational", "ssd",
    "network" or "memory"."""
    path = next(_paths(dataset), None)
    if path is None:
        return {}
    try:
        kind = _filesystem(path, system)
        storage = _storage(path, kind or "", system)
    except (OSError, RuntimeError, ValueError):
        return {}
    facts = {"dataset_filesystem": kind, "dataset_storage": storage}
    return {name: value for name, value in facts.items() if value is not None}


def _paths(dataset: Any) -> Iterator[Path]:
    """Yields existing paths among the attributes of `dataset`, those under usual names first. Continues with the data
    sets that `dataset` wraps.

    Only attributes in `__dict__` are read, because a property may run code of the user."""
    for _ in range(MAX_WRAPPERS):
        attributes = getattr(dataset, "__dict__", {})
        others = [name for name in list(attributes)[:MAX_ATTRIBUTES] if name not in _USUAL]
        for name in (*_USUAL, *others):
            value = _first(_first(attributes.get(name)))  # of a list of samples, the file of the first one
            is_text = isinstance(value, str) and (name in _USUAL or os.sep in value)
            if (is_text or isinstance(value, Path)) and value and os.path.exists(value):
                yield Path(value)
        dataset = attributes.get("dataset", _first(attributes.get("datasets")))


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list | tuple) and value else value


def _filesystem(path: Path, system: Path) -> str | None:
    lines = (system / "proc/self/mounts").read_text().splitlines()
    mounts = [words[1:3] for line in lines if len(words := line.split(" ")) > 2]
    found = path.resolve(strict=True)
    parents = [(len(Path(point).parts), kind) for point, kind in mounts if found.is_relative_to(point)]
    return max(parents, default=(0, None))[1]


def _storage(path: Path, filesystem: str, system: Path) -> str | None:
    if filesystem.startswith(_NETWORK):
        return "network"
    if filesystem in _MEMORY:
        return "memory"
    device = os.stat(path).st_dev
    block = system / f"sys/dev/block/{os.major(device)}:{os.minor(device)}"
    kinds = {_kind(disk) for disk in _disks(block.resolve(), MAX_LAYERS)}
    return next(iter(kinds)) if len(kinds) == 1 else None


def _disks(block: Path, layers: int) -> Iterator[Path]:
    """Yields the folders of the disks below the block device `block`. LVM, LUKS and RAID devices consist of other
    devices, which are followed up to `layers` levels deep."""
    below = list((block / "slaves").glob("*")) if layers else []
    for each in below:
        yield from _disks(each.resolve(), layers - 1)
    if not below:
        yield block


def _kind(disk: Path) -> str | None:
    if disk.name.startswith(_VIRTUAL):
        return None
    for folder in (disk, disk.parent):  # a partition has no queue of its own
        try:
            text = (folder / "queue/rotational").read_text().strip()
        except OSError:
            continue
        return {"0": "ssd", "1": "rotational"}.get(text)
    return None
