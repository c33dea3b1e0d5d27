"""The file system and the kind of disk of a data set, without its path."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tb_bottleneck.monitor.facts.storage import storage_facts


class Files:
    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)

    @property
    def root(self) -> str:
        raise RuntimeError("a property of the user must not run")


class Ambiguous:
    """As an array or a tensor."""

    def __bool__(self) -> bool:
        raise RuntimeError("no single truth value")


@pytest.fixture
def system(tmp_path: Path) -> Path:
    """Returns a machine on whose disk 8:1 the temporary files lie."""
    (tmp_path / "proc/self").mkdir(parents=True)
    return tmp_path


def mount(system: Path, kind: str) -> None:
    (system / "proc/self/mounts").write_text(f"/dev/sda1 / {kind} rw 0 0\n")


@pytest.mark.parametrize(("flag", "kind"), [("1", "rotational"), ("0", "ssd"), ("?", None)])
def test_the_disk_of_a_partition_tells_whether_it_rotates(system: Path, flag: str, kind: str | None) -> None:
    mount(system, "ext4")
    device = os.stat(system).st_dev
    disk = system / "sys/devices/sda"
    (disk / "queue").mkdir(parents=True)
    (disk / "queue/rotational").write_text(f"{flag}\n")
    (disk / "sda1").mkdir()
    (system / "sys/dev/block").mkdir(parents=True)
    (system / f"sys/dev/block/{os.major(device)}:{os.minor(device)}").symlink_to(disk / "sda1")
    facts = storage_facts(Files(data_dir=str(system)), system)
    assert facts == {"dataset_filesystem": "ext4"} | ({"dataset_storage": kind} if kind else {})


def test_a_virtual_disk_tells_nothing(system: Path) -> None:
    """virtio reports "rotational" for any storage of the host."""
    mount(system, "ext4")
    device = os.stat(system).st_dev
    disk = system / "sys/devices/vda"
    (disk / "queue").mkdir(parents=True)
    (disk / "queue/rotational").write_text("1\n")
    (system / "sys/dev/block").mkdir(parents=True)
    (system / f"sys/dev/block/{os.major(device)}:{os.minor(device)}").symlink_to(disk)
    assert storage_facts(Files(path=system), system) == {"dataset_filesystem": "ext4"}


@pytest.mark.parametrize(
    ("disks", "kind"),
    [
        ({"sda": "1"}, "rotational"),
        ({"sda": "0", "nvme0n1": "0"}, "ssd"),
        ({"sda": "0", "sdb": "1"}, None),
        ({"vda": "1"}, None),
    ],
)
def test_a_mapped_device_is_what_it_lies_on(system: Path, disks: dict[str, str], kind: str | None) -> None:
    mount(system, "ext4")
    mapped = system / "sys/devices/virtual/dm-0"
    (mapped / "slaves").mkdir(parents=True)
    for name, flag in disks.items():
        (system / f"sys/devices/{name}/queue").mkdir(parents=True)
        (system / f"sys/devices/{name}/queue/rotational").write_text(flag)
        (system / f"sys/devices/{name}/{name}2").mkdir()
        (mapped / f"slaves/{name}2").symlink_to(system / f"sys/devices/{name}/{name}2")
    device = os.stat(system).st_dev
    (system / "sys/dev/block").mkdir(parents=True)
    (system / f"sys/dev/block/{os.major(device)}:{os.minor(device)}").symlink_to(mapped)
    facts = storage_facts(Files(path=system), system)
    assert facts == {"dataset_filesystem": "ext4"} | ({"dataset_storage": kind} if kind else {})


@pytest.mark.parametrize("wrapped", [lambda data: Files(dataset=data), lambda data: Files(datasets=[data])])
@pytest.mark.parametrize("name", ["root", "my_pictures"])
def test_the_path_of_a_data_set_inside_another(system: Path, wrapped: Callable[[Files], Files], name: str) -> None:
    mount(system, "nfs4")
    facts = storage_facts(wrapped(Files(**{name: str(system)})), system)
    assert facts == {"dataset_filesystem": "nfs4", "dataset_storage": "network"}


@pytest.mark.parametrize(
    ("filesystem", "kind"), [("nfs4", "network"), ("fuse.s3fs", "network"), ("lustre", "network"), ("tmpfs", "memory")]
)
def test_a_file_system_may_tell_where_it_is(system: Path, filesystem: str, kind: str) -> None:
    mount(system, filesystem)
    data = Files(dataset=Files(samples=[(str(system), 3), ("elsewhere", 4)]))
    assert storage_facts(data, system) == {"dataset_filesystem": filesystem, "dataset_storage": kind}


@pytest.mark.parametrize(
    "data",
    [
        Files(),
        Files(path="/no/such/file"),
        Files(files=[]),
        Files(split="tests"),
        Files(labels=Ambiguous()),
        object(),
        [1, 2],
    ],
)
def test_without_a_path_nothing_is_told(data: object) -> None:
    assert storage_facts(data) == {}
