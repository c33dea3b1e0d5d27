"""Turns finished recordings into files under torch.profiler's own names, each whole or not there at all.

The training thread itself writes the text of a recording, before it goes on: torch crashes where another recording
begins meanwhile. (Seen with torch 2.13: a segmentation fault in export_chrome_trace, when the training's own profiler
began while the monitor's thread was writing.) Packing the text is the monitor's thread's work.
"""

import gzip
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from tb_bottleneck.monitor.capture.trace_capture import FinishedRecording
from tb_bottleneck.monitor.guard import Guard
from tb_bottleneck.storage import atomic_file

MOST_BYTES = 512 * 1024**2
"""For all traces of one process together, compressed."""
LEAST_FREE_BYTES = 2 * 1024**3
"""A disk with less room than this is left alone: the training's checkpoints come first."""
_LEVEL = 5


@dataclass(frozen=True, slots=True)
class TraceText:
    """A recording's text, under a name that nobody takes for a trace."""

    path: Path
    name: str
    reason: str


class TraceWriter:
    """Writes until the room for traces is used up. What the disk refuses is lost, and a note says so."""

    def __init__(
        self, rank: int, guard: Guard, most_bytes: int = MOST_BYTES, least_free: int = LEAST_FREE_BYTES
    ) -> None:
        self._rank = rank
        self._guard = guard
        self._room = most_bytes
        self._least_free = least_free

    def write(self, recorded: FinishedRecording, directory: Path) -> TraceText | None:
        """Writes the text. For the training thread."""
        if self._room <= 0:
            self._guard.note("dropped", "a trace was not written: the room for this process's traces is used up")
            return None
        name = f"rank{self._rank}_{os.getpid()}.{time.time_ns()}.pt.trace.json.gz"
        text = TraceText(directory / f"{name}.unpacked", name, recorded.reason)
        try:
            if shutil.disk_usage(directory).free < self._least_free:
                self._guard.note("dropped", "a trace was not written: there is little room left on the disk")
                return None
            recorded.profiler.export_chrome_trace(str(text.path))
        except (OSError, RuntimeError) as error:
            self._lost(error)
            text.path.unlink(missing_ok=True)
            return None
        return text

    def pack(self, text: TraceText) -> Path | None:
        """Makes the trace of it. For the monitor's thread."""
        path = text.path.with_name(text.name)
        try:
            with (
                open(text.path, "rb") as source,
                atomic_file(path, mode=0o666) as file,
                gzip.open(file, "wb", compresslevel=_LEVEL) as target,
            ):
                shutil.copyfileobj(source, target, 1 << 20)
            self._room -= path.stat().st_size
        except (OSError, MemoryError) as error:
            self._lost(error)
            return None
        finally:
            text.path.unlink(missing_ok=True)
        self._guard.note("capture_ended", f"{text.reason}: {path.name}")
        return path

    def _lost(self, error: Exception) -> None:
        self._guard.note("dropped", f"a trace could not be written: {type(error).__name__}")
