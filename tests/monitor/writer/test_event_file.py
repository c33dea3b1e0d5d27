"""An event file contains only whole events, even if the disk fails."""

import errno
import os
from pathlib import Path

import pytest
from monitor.written import read

from tb_bottleneck.monitor.writer.encode import scalars_event
from tb_bottleneck.monitor.writer.event_file import EventFile


def opened(directory: Path) -> EventFile:
    file = EventFile(directory)
    file.open()
    return file


def test_each_event_is_with_the_system_when_write_returns(tmp_path: Path) -> None:
    file = opened(tmp_path)
    for step in range(3):
        file.write(scalars_event({"a": step}, step))
        assert len(read(tmp_path).scalars["a"]) == step + 1
    file.close()
    file.close()


def test_no_name_of_a_host_or_a_user(tmp_path: Path) -> None:
    file = opened(tmp_path)
    file.close()
    assert file.path.name.split(".")[:3] == ["events", "out", "tfevents"]
    assert all(part.isdecimal() for part in file.path.name.split(".")[3:])


def test_an_event_that_the_disk_takes_half_of_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = opened(tmp_path)
    file.write(scalars_event({"a": 1.0}, 1))
    whole, write, full = file.path.stat().st_size, os.write, [True]

    def half(descriptor: int, data: bytes) -> int:
        if full[0] and len(data) < 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[:10] if full[0] else data)

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(OSError, match="No space"):
        file.write(scalars_event({"a": 2.0}, 2))
    assert file.path.stat().st_size == whole
    assert file.is_whole()
    full[0] = False
    file.write(scalars_event({"a": 3.0}, 3))
    file.close()
    assert read(tmp_path).scalars["a"] == [(1, 1.0), (3, 3.0)]


def test_where_even_that_fails_the_file_is_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = opened(tmp_path)

    def fails(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fails)
        patch.setattr(os, "ftruncate", fails)
        with pytest.raises(OSError, match="Input/output"):
            file.write(b"")
    assert not file.is_whole()
    file.close()


def test_a_closed_file_takes_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="closed"):
        EventFile(tmp_path).write(b"")
