"""The file system and the kind of disk of a data set, without its path."""

import os
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
    ("filesystem", "kind"), [("nfs4", "network"), ("fuse.s3fs", "network"), ("lustre", "network"), ("tmpfs", "memory")]
)
def test_a_file_system_may_tell_where_it_is(system: Path, filesystem: str, kind: str) -> None:
    mount(system, filesystem)
    data = Files(dataset=Files(samples=[(str(system), 3), ("elsewhere", 4)]))
    assert storage_facts(data, system) == {"dataset_filesystem": filesystem, "dataset_storage": kind}


@pytest.mark.parametrize("data", [Files(), Files(path="/no/such/file"), Files(files=[]), object(), [1, 2]])
def test_without_a_path_nothing_is_told(data: object) -> None:
    assert storage_facts(data) == {}
