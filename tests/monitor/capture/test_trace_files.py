"""Recordings are written atomically, and never fill the disk."""

import gzip
import os
from pathlib import Path

import pytest

from tb_bottleneck.monitor.capture.trace_capture import FinishedRecording
from tb_bottleneck.monitor.capture.trace_files import TraceWriter
from tb_bottleneck.monitor.guard import Guard
from tb_bottleneck.sources.logdir import scan

TEXT = b'{"traceEvents": []}' * 1000


class Fake:
    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def export_chrome_trace(self, path: str) -> None:
        Path(path).write_bytes(TEXT)
        if self.error is not None:
            raise self.error


def traces(guard: Guard, **limits: int) -> TraceWriter:
    return TraceWriter(3, guard, **{"min_free": 0, **limits})


def recorded(error: Exception | None = None) -> FinishedRecording:
    return FinishedRecording(Fake(error), "asked")  # type: ignore[arg-type]


def codes(guard: Guard) -> list[str]:
    return [note.code for note in guard.take_notes()]


def test_a_trace_has_torchs_own_kind_of_name_once_it_is_whole(tmp_path: Path) -> None:
    guard = Guard()
    text = traces(guard).write(recorded(), tmp_path)
    assert text is not None
    assert scan(str(tmp_path)).recordings == (), "an incomplete file is no trace"
    assert list(tmp_path.iterdir()) == [], "nothing remains of it if the process is killed now"
    path = traces(guard).pack(text)
    assert path is not None
    assert path.name.startswith(f"rank3_{os.getpid()}.")
    assert gzip.decompress(path.read_bytes()) == TEXT
    assert [one.path for one in scan(str(tmp_path)).recordings] == [str(path)]
    assert list(tmp_path.iterdir()) == [path]
    assert codes(guard) == ["capture_ended"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("Trace is already saved")])
def test_a_text_that_cannot_be_written_is_lost_without_a_trace(tmp_path: Path, error: Exception) -> None:
    guard = Guard()
    assert traces(guard).write(recorded(error), tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    assert codes(guard) == ["dropped"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), MemoryError()])
def test_one_that_cannot_be_packed_is_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """After a lack of memory, nothing was written any more."""

    def fails(*_: object) -> None:
        raise error

    guard = Guard()
    text = traces(guard).write(recorded(), tmp_path)
    assert text is not None
    monkeypatch.setattr(os, "replace", fails)
    assert traces(guard).pack(text) is None
    assert list(tmp_path.iterdir()) == []
    assert codes(guard) == ["dropped"]


def test_the_room_for_traces_is_bounded(tmp_path: Path) -> None:
    guard = Guard()
    writer = traces(guard, max_bytes=10)
    first = writer.write(recorded(), tmp_path)
    assert first is not None
    writer.pack(first)
    assert writer.write(recorded(), tmp_path) is None
    assert codes(guard) == ["capture_ended", "dropped"]


def test_a_disk_with_little_room_is_left_to_the_training(tmp_path: Path) -> None:
    guard = Guard()
    assert traces(guard, min_free=1 << 62).write(recorded(), tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    assert codes(guard) == ["dropped"]
