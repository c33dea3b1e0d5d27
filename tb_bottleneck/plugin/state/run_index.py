"""The recordings under the logdir and their review, kept up to date by scans in the background while clients ask."""

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from tb_bottleneck.plugin.turns import short_turns
from tb_bottleneck.review.notes import Note, reviews_of
from tb_bottleneck.review.store import read_all
from tb_bottleneck.schema.review_pb2 import Review
from tb_bottleneck.sources.logdir import Listing, RecordingFile, Root, scan_all

Key = TypeVar("Key")
Value = TypeVar("Value")


class LruCache(Generic[Key, Value]):
    """A map with a limited number of entries. If it is full, the least recently used entry is removed. The map has no
    lock; its owner must hold one."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """Returns the value of `key` and marks it as used; returns None if the map has no such key."""
        if key in self._entries:
            self._entries.move_to_end(key)
        return self._entries.get(key)

    def put(self, key: Key, value: Value) -> None:
        """Adds `value` under `key`, and removes the least recently used entry if the map has too many."""
        self._entries[key] = value
        self._entries.move_to_end(key)
        if len(self._entries) > self._capacity:
            self._entries.popitem(last=False)

    def values(self) -> list[Value]:
        """Returns all values, the least recently used one first."""
        return list(self._entries.values())

    def keep(self, wanted: Callable[[Key], bool]) -> None:
        """Removes every entry for whose key `wanted` returns False."""
        for key in [key for key in self._entries if not wanted(key)]:
            del self._entries[key]


SCAN_SECONDS = 5.0  # TensorBoard's own --reload_interval
PAUSE_FACTOR = 10.0  # the pause after a scan is at least this many times as long as the scan


@dataclass(frozen=True)
class LogdirScan:
    """The result of one scan of the logdir. `by_id` maps ids to recordings; `notes` and `reviews` are what reviewers
    wrote."""

    listing: Listing
    by_id: Mapping[str, RecordingFile]
    notes: tuple[Note, ...] = ()
    reviews: Mapping[RecordingFile, Review] = field(default_factory=dict)


def id_of(recording: RecordingFile) -> str:
    """Returns the id by which clients name a recording. The id depends only on the path and the run of the recording,
    so it stays the same after a restart."""
    return hashlib.sha256(os.fsencode(recording.path) + b"\0" + recording.run.encode()).hexdigest()[:16]


def scan_logdir(
    roots: Sequence[Root], scan: Callable[[Sequence[Root]], Listing] = scan_all, last: LogdirScan | None = None
) -> LogdirScan:
    """Returns a scan of the logdir. If the recordings are those of `last`, they are the same tuple, so that what others
    built from it stays valid."""
    listing, review = scan(roots), read_all(roots)
    same = last is not None and listing.recordings == last.listing.recordings
    recordings = last.listing.recordings if same and last is not None else listing.recordings
    return LogdirScan(
        replace(listing, recordings=recordings, problems=listing.problems + review.problems),
        {id_of(recording): recording for recording in recordings},
        review.notes,
        reviews_of(review.notes, recordings),
    )


class RunIndex:
    """Holds the last scan of the logdir in memory. A thread of its own scans the disk. Any thread may call every
    method."""

    def __init__(self, roots: Sequence[Root], scan: Callable[[Sequence[Root]], Listing] = scan_all) -> None:
        self._roots = roots
        self._scan = scan
        self._lock = threading.Lock()
        self._last: LogdirScan | None = None
        self._due = 0.0  # monotonic seconds
        self._thread: threading.Thread | None = None

    def latest(self) -> LogdirScan | None:
        """Returns the last scan, or None until the first scan has ended. Starts the next scan if it is due."""
        self._start_scan_if_due()
        with self._lock:
            return self._last

    def close(self) -> None:
        """Waits for a scan that is in progress."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _start_scan_if_due(self) -> None:
        with self._lock:
            if self._thread is None and time.monotonic() >= self._due:
                self._thread = threading.Thread(target=self._scan_logdir, name="tb_bottleneck-scan", daemon=True)
                self._thread.start()

    def _scan_logdir(self) -> None:
        began = time.monotonic()
        try:
            self._scan_in_turns()
        finally:
            ended = time.monotonic()
            with self._lock:
                self._due = ended + max(SCAN_SECONDS, PAUSE_FACTOR * (ended - began))
                self._thread = None

    def _scan_in_turns(self) -> None:
        with short_turns():
            scan = scan_logdir(self._roots, self._scan, self._last)
            with self._lock:
                self._last = scan
