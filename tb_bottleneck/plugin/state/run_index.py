"""The recordings under the logdir, kept up to date by looking again in the background while somebody asks."""

import hashlib
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tb_bottleneck.sources.logdir import Listing, Recording, Root, scan_all

LOOK_SECONDS = 5.0  # TensorBoard's own --reload_interval
REST_FACTOR = 10.0  # a look that took long is followed by a rest this many times as long


@dataclass(frozen=True)
class LogdirScan:
    """What one look found, with the recordings by their opaque ids."""

    listing: Listing
    by_id: Mapping[str, Recording]


def id_of(recording: Recording) -> str:
    """The opaque id of a recording: the same while the file stays where it is, also after a restart."""
    return hashlib.sha256(os.fsencode(recording.path) + b"\0" + recording.run.encode()).hexdigest()[:16]


class RunIndex:
    """Answers from memory; a thread of its own looks at the disk, at most one at a time. For any number of threads."""

    def __init__(self, roots: Sequence[Root], scan: Callable[[Sequence[Root]], Listing] = scan_all) -> None:
        self._roots = roots
        self._scan = scan
        self._lock = threading.Lock()
        self._last: LogdirScan | None = None
        self._due = 0.0  # monotonic seconds
        self._thread: threading.Thread | None = None

    def latest(self) -> LogdirScan | None:
        """What the last look found; None while the first one is not over."""
        self._look_again()
        with self._lock:
            return self._last

    def close(self) -> None:
        """Waits for a look that is under way."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _look_again(self) -> None:
        """Starts a look where one is due and none is under way."""
        with self._lock:
            if self._thread is None and time.monotonic() >= self._due:
                self._thread = threading.Thread(target=self._look, name="tb_bottleneck-look", daemon=True)
                self._thread.start()

    def _look(self) -> None:
        began = time.monotonic()
        try:
            listing = self._scan(self._roots)
            found = LogdirScan(listing, {id_of(recording): recording for recording in listing.recordings})
            with self._lock:
                self._last = found
        finally:
            ended = time.monotonic()
            with self._lock:
                self._due = ended + max(LOOK_SECONDS, REST_FACTOR * (ended - began))
                self._thread = None
