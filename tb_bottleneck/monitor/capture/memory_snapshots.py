"""Snapshots of the CUDA allocator: with each trace, at a new peak, and when memory runs out. Off by default.

While snapshots are on, torch records a stack for each allocation, which takes about 2 us. A snapshot with a full
history of HISTORY calls stops the training for about 0.7 s (pytorch#172672), so only a few are taken: between two
steps, or when an allocation fails. Taking them on the monitor's own thread would not help: on any thread, torch's
snapshot holds the interpreter's lock and the allocator's lock.
"""

import os
import pickle
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from tb_bottleneck.base.persistence import atomic_file
from tb_bottleneck.monitor.capture.trace_files import MIN_FREE_BYTES
from tb_bottleneck.monitor.guard import Guard
from tb_bottleneck.monitor.steps.row_queue import StepRow
from tb_bottleneck.schema.signals import SNAPSHOT_TAKEN

SIGNAL = "memory_snapshots"
HISTORY = 100_000
"""Number of allocator calls that torch keeps. A training step makes a thousand to twenty thousand calls."""
NEW_PEAK = 1.1
"""A peak is new if it is more than this factor times the peak of the last snapshot that was taken at a peak."""
WARM_UP_STEPS = 10
"""Number of the first step whose peak counts. In earlier steps, each step may have a new peak."""
_PROTOCOL = 4


class Allocator(Protocol):
    """The part of torch's memory module that the monitor uses."""

    def ready(self) -> bool:
        """Returns True once a device is in use."""
        ...

    def record_history(self, entries: int) -> None:
        """Starts to record the last `entries` allocator calls. With 0, ends the recording."""
        ...

    def snapshot(self) -> Any:
        """Returns the snapshot as plain data."""
        ...

    def on_out_of_memory(self, call: Callable[[], None]) -> None:
        """Registers `call`, which then runs at each failed request for memory, before the error is raised."""
        ...


class MemorySnapshots:
    """Takes at most `limit` snapshots and writes them to the directory that the function `directory` returns.

    All methods are for the training thread. Only `take` may also run on autograd's thread, where memory may run out.
    After a failure, a note is recorded, and no more snapshots are taken."""

    def __init__(
        self, allocator: Allocator, directory: Callable[[], Path], rank: int, guard: Guard, limit: int
    ) -> None:
        self._allocator, self._directory, self._rank, self._guard = allocator, directory, rank, guard
        self._left = limit
        self._recording = False
        self._peak = 0.0

    def advance(self, row: StepRow) -> None:
        """Handles the end of the step `row`: starts the history of allocator calls if it is not on yet, otherwise takes
        a snapshot if the step has a new peak of memory."""
        if self._left <= 0:
            return
        if not self._recording:
            self._guard.call(SIGNAL, self._begin)
            return
        peak = row.figures.get("memory_allocated_peak", 0.0)
        if row.number >= WARM_UP_STEPS and peak > NEW_PEAK * self._peak:
            self._peak = peak
            self.take("peak")

    def take(self, reason: str) -> None:
        """Takes a snapshot if the history is on and the limit is not reached. `reason` is part of the file's name:
        "trace", "peak" or "oom"."""
        if self._recording and self._left > 0:
            self._left -= 1
            self._guard.call(SIGNAL, self._write, reason)

    def finish(self) -> None:
        """Ends the history of allocator calls."""
        if self._recording:
            self._recording = False
            self._guard.call(SIGNAL, self._allocator.record_history, 0)

    def _begin(self) -> None:
        if self._allocator.ready():
            self._allocator.record_history(HISTORY)
            self._allocator.on_out_of_memory(lambda: self.take("oom"))
            self._recording = True

    def _write(self, reason: str) -> None:
        directory = self._directory()
        if shutil.disk_usage(directory).free < MIN_FREE_BYTES:
            self._guard.note("dropped", "a memory snapshot was not written: there is little free space on the disk")
            return
        began = time.perf_counter()
        path = directory / f"rank{self._rank}_{os.getpid()}.{time.time_ns()}.{reason}.pickle"
        with atomic_file(path, mode=0o666) as file:
            pickle.dump(self._allocator.snapshot(), file, protocol=_PROTOCOL)
        self._guard.note(SNAPSHOT_TAKEN, f"memory snapshot in {time.perf_counter() - began:.2f} s: {path.name}")
