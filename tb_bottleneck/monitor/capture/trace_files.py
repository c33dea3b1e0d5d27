"""Writes finished recordings atomically to files with torch.profiler's own names.

The training thread writes the text of a recording before it continues with the training, because torch crashes if
another recording begins meanwhile. (Seen with torch 2.13: a segmentation fault in export_chrome_trace, when the
training's own profiler began while the monitor's thread was writing.) The monitor's thread then compresses the text.
"""

import contextlib
import gzip
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from tb_bottleneck.base.persistence import atomic_file
from tb_bottleneck.monitor.capture import call_lines
from tb_bottleneck.monitor.capture.trace_capture import FinishedRecording
from tb_bottleneck.monitor.guard import Guard, termination_held
from tb_bottleneck.schema.signals import CAPTURE_ENDED

MAX_TRACE_BYTES = 512 * 1024**2
"""Limit of the compressed size of all traces of one process together."""
MIN_FREE_BYTES = 2 * 1024**3
"""Free disk space that must be left for the training's checkpoints. With less, no trace is written."""
_LEVEL = 5


@dataclass(frozen=True, slots=True)
class TraceText:
    """A recording as uncompressed text in the open file `file`. The path of this file was `unpacked`.

    On POSIX, the name of the file was removed, so that the file disappears if the process is killed. The trace file
    will have the name `name`. `reason` says why the trace was recorded."""

    file: BinaryIO
    unpacked: Path
    name: str
    reason: str
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys to add to the trace, with their values as JSON texts."""

    @property
    def path(self) -> Path:
        """The path of the trace file to which the text will be written."""
        return self.unpacked.with_name(self.name)

    def discard(self) -> None:
        """Closes the file and removes its name if it still has one."""
        self.file.close()
        with contextlib.suppress(OSError):
            self.unpacked.unlink(missing_ok=True)


class TraceWriter:
    """Writes trace files up to a total size. If a trace cannot be written, it is lost and a note is recorded."""

    def __init__(
        self, rank: int, guard: Guard, max_bytes: int = MAX_TRACE_BYTES, min_free: int = MIN_FREE_BYTES
    ) -> None:
        self._rank = rank
        self._guard = guard
        self._room = max_bytes
        self._min_free = min_free

    def write(self, recorded: FinishedRecording, directory: Path) -> TraceText | None:
        """Writes the recording to `directory` as uncompressed text; returns None if the trace is lost. Must be called
        on the training thread."""
        if self._room <= 0:
            self._guard.note("dropped", "a trace was not written: this process's traces have reached their size limit")
            return None
        name = f"rank{self._rank}_{os.getpid()}.{time.time_ns()}.pt.trace.json.gz"
        with termination_held():  # torch needs a file with a name, which would remain if the process ended here
            return self._exported(recorded, directory / f"{name}.unpacked", name)

    def _exported(self, recorded: FinishedRecording, unpacked: Path, name: str) -> TraceText | None:
        try:
            if shutil.disk_usage(unpacked.parent).free < self._min_free:
                self._guard.note("dropped", "a trace was not written: there is little free space on the disk")
                return None
            recorded.profiler.export_chrome_trace(str(unpacked))
            lines = call_lines.call_lines(recorded.profiler, recorded.samples)
            file = open(unpacked, "rb")  # noqa: SIM115  # the writer thread closes it
        except (OSError, RuntimeError) as error:
            self._lost(error)
            unpacked.unlink(missing_ok=True)
            return None
        with contextlib.suppress(OSError):  # Windows removes no open file
            unpacked.unlink()
        keys = {} if lines is None else {call_lines.KEY: lines}
        return TraceText(file, unpacked, name, recorded.reason, keys)

    def pack(self, text: TraceText) -> Path | None:
        """Compresses `text` to a trace file. Returns the path of this file, or None if the trace is lost. Must be
        called on the monitor's thread."""
        path = text.path
        try:
            with atomic_file(path, mode=0o666) as file, gzip.open(file, "wb", compresslevel=_LEVEL) as target:
                call_lines.copy_with_keys(text.file, target, text.keys)
            self._room -= path.stat().st_size
        except (OSError, MemoryError) as error:
            self._lost(error)
            return None
        finally:
            text.discard()
        self._guard.note(CAPTURE_ENDED, f"{text.reason}: {path.name}")
        return path

    def _lost(self, error: Exception) -> None:
        self._guard.warn_of_disk(error)
        self._guard.note("dropped", f"a trace could not be written: {type(error).__name__}")
