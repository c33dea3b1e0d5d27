"""The recordings under one logdir, by the ids that the tab uses. Nothing outside of the logdir can be named."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.plugin.http.comparison_routes import MONITOR_FOLDER
from tb_bottleneck.plugin.state.run_index import LogdirScan, id_of
from tb_bottleneck.review.states import names_of, reviews_of
from tb_bottleneck.review.store import read_all
from tb_bottleneck.review.subjects import roots_of
from tb_bottleneck.sources.logdir import RecordingFile, Root, scan_all

FRESH_SECONDS = 2.0
"""A scan serves the calls of this time: an agent that recorded again wants the new files, and agents call in bursts."""


@dataclass(frozen=True)
class Recordings:
    """The recordings at one time."""

    scan: LogdirScan

    @cached_property
    def folders(self) -> dict[str, list[RecordingFile]]:
        """The recordings of each folder of a run, with those of the monitor's own folders below it."""
        found: dict[str, list[RecordingFile]] = {}
        for recording in self.scan.listing.recordings:
            found.setdefault(folder_of(recording), []).append(recording)
        return found

    def named(self, name: str) -> RecordingFile:
        """Returns the recording with this id or this name, RUN/FILE as `list_runs` shows it.

        Raises:
            NotFound: there is none.
        """
        if name in self.scan.by_id:
            return self.scan.by_id[name]
        for recording in self.scan.listing.recordings:
            if name == names_of(recording)[1]:
                return recording
        raise NotFound("there is no recording with this id (any more); list_runs lists the ids")

    def trace(self, name: str) -> RecordingFile:
        """Returns the trace with this id or name; for telemetry, the last trace of the same folder.

        Raises:
            NotFound: there is no such recording, or no trace beside it.
        """
        recording = self.named(name)
        traces = [each for each in self.folders[folder_of(recording)] if each.is_trace]
        if recording.is_trace:
            return recording
        if not traces:
            raise NotFound("there is no trace beside this recording; how_to_record says how to make one")
        return max(traces, key=lambda each: (each.mtime_ns, each.path))


def folder_of(recording: RecordingFile) -> str:
    """Returns the run without the monitor's own folders, which are below it."""
    parts = recording.run.split("/")
    return "/".join(parts[: parts.index(MONITOR_FOLDER)]) or "." if MONITOR_FOLDER in parts else recording.run


class AgentLogdir:
    """Scans a logdir, or the directories of a `--logdir_spec`, when it is asked. Any thread may call every method.

    Raises:
        NotFound: one of them is no local directory.
    """

    def __init__(self, logdir: str) -> None:
        self.roots: Sequence[Root] = roots_of(logdir)
        self._lock = threading.Lock()
        self._last: Recordings | None = None
        self._ended = 0.0  # monotonic seconds

    def recordings(self) -> Recordings:
        """Returns the recordings, from a scan of the last FRESH_SECONDS."""
        with self._lock:
            if self._last is None or time.monotonic() - self._ended > FRESH_SECONDS:
                listing, notes = scan_all(self.roots), read_all(self.roots).notes
                by_id = {id_of(recording): recording for recording in listing.recordings}
                self._last = Recordings(LogdirScan(listing, by_id, notes, reviews_of(notes, listing.recordings)))
                self._ended = time.monotonic()
            return self._last
