"""Writes an event file with atomic events.

TensorBoard's own EventFileWriter is not used, because it puts the host's name into the file name, starts its own
thread, and leaves half an event in the file if the disk is full. Every reader stops at half an event.
"""

import itertools
import os
import time
from pathlib import Path

from tb_bottleneck.monitor.writer.encode import first_event
from tb_bottleneck.monitor.writer.wire import record

_SEQUENCE = itertools.count()
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)


class EventFile:
    """Appends events to a new file in a directory. When `write` returns, the event has been passed to the operating
    system."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / f"events.out.tfevents.{int(time.time()):010d}.{os.getpid()}.{next(_SEQUENCE)}"
        self._descriptor: int | None = None
        self._length = 0
        self._whole = True

    def open(self) -> None:
        """Creates the file. Raises OSError."""
        self._descriptor = os.open(self.path, _NEW, 0o666)
        self.write(first_event())

    def write(self, event: bytes) -> None:
        """Appends the encoded event `event`. After an OSError, the file is either unchanged, or `is_whole` returns
        False."""
        if self._descriptor is None:
            raise OSError("the event file is closed")
        data = record(event)
        try:
            self._append(self._descriptor, data)
        except OSError:
            self._whole = False
            os.ftruncate(self._descriptor, self._length)
            os.lseek(self._descriptor, self._length, os.SEEK_SET)
            self._whole = True
            raise
        self._length += len(data)

    def is_whole(self) -> bool:
        """Returns True if the file is open and ends with a whole event."""
        return self._whole and self._descriptor is not None

    def close(self) -> None:
        """Closes the file. May be called twice."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @staticmethod
    def _append(descriptor: int, data: bytes) -> None:
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[os.write(descriptor, remaining) :]
