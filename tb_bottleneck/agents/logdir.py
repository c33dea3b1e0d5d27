"""The recordings under one logdir, with the ids that the tab uses. Nothing outside the logdir has an id."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.plugin.http.comparison_routes import MONITOR_FOLDER
from tb_bottleneck.plugin.state.run_index import LogdirScan, scan_logdir
from tb_bottleneck.review.notes import names_of
from tb_bottleneck.review.subjects import roots_of
from tb_bottleneck.sources.logdir import RecordingFile, Root

FRESH_SECONDS = 2.0
"""How long a scan is reused. Agents call in bursts, but an agent that recorded again needs the new files soon."""


@dataclass(frozen=True)
class Recordings:
    """The recordings that one scan of the logdir found."""

    scan: LogdirScan

    @cached_property
    def folders(self) -> dict[str, list[RecordingFile]]:
        """Maps the folder of each run to the recordings in this folder. Recordings in the monitor's own folders belong
        to the folder above."""
        found: dict[str, list[RecordingFile]] = {}
        for recording in self.scan.listing.recordings:
            found.setdefault(folder_of(recording), []).append(recording)
        return found

    def named(self, name: str) -> RecordingFile:
        """Returns the recording whose id or name is `name`. Its name is RUN/FILE, as `list_runs` shows it.

        Raises:
            NotFound: no recording has this id or name.
        """
        if name in self.scan.by_id:
            return self.scan.by_id[name]
        for recording in self.scan.listing.recordings:
            if name == names_of(recording)[1]:
                return recording
        raise NotFound("there is no recording with this id (any more); list_runs lists the ids")

    def trace(self, name: str) -> RecordingFile:
        """Returns the trace whose id or name is `name`. For other recordings, returns the newest trace of their folder.

        Raises:
            NotFound: there is no such recording, or its folder has no trace.
        """
        recording = self.named(name)
        traces = [each for each in self.folders[folder_of(recording)] if each.is_trace]
        if recording.is_trace:
            return recording
        if not traces:
            raise NotFound("there is no trace beside this recording; how_to_record says how to make one")
        return max(traces, key=lambda each: (each.mtime_ns, each.path))


def folder_of(recording: RecordingFile) -> str:
    """Returns the run of `recording`, without the monitor's own folder at the end of the path."""
    parts = recording.run.split("/")
    return "/".join(parts[: parts.index(MONITOR_FOLDER)]) or "." if MONITOR_FOLDER in parts else recording.run


class AgentLogdir:
    """A logdir, or the directories of a `--logdir_spec`, that is scanned on request. All methods are thread-safe.

    Raises:
        NotFound: one of the directories is not a local directory.
    """

    def __init__(self, logdir: str) -> None:
        self.roots: Sequence[Root] = roots_of(logdir)
        self._lock = threading.Lock()
        self._last: Recordings | None = None
        self._ended = 0.0  # monotonic seconds

    def recordings(self) -> Recordings:
        """Returns all recordings. Scans again if the last scan is older than FRESH_SECONDS."""
        with self._lock:
            if self._last is None or time.monotonic() - self._ended > FRESH_SECONDS:
                self._last = Recordings(scan_logdir(self.roots))
                self._ended = time.monotonic()
            return self._last
