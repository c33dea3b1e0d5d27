"""The telemetry of runs, in memory while clients ask for it.

    want(recordings) ──▶ a thread reads the files that changed, and judges them ──▶ digest (kept)
    report, entry    ──▶ a cached reader of the file, brought up to date first

A digest is a short summary of a report. An event file grows while its training runs. Only the added part is read,
because reading the whole file each time would take longer and longer.
"""

import logging
import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tb_bottleneck.base.measure import replace
from tb_bottleneck.plugin.state.run_index import LruCache
from tb_bottleneck.plugin.workers.analysis_queue import DONE, WAITING, AnalysisState
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.sources.logdir import RecordingFile

if TYPE_CHECKING:
    from tb_bottleneck.telemetry.telemetry import Telemetry

CACHED_FILES = 4
"""Maximum number of files in memory, at about 150 MB each after a day. If a file was dropped from memory, the next
request reads it from its beginning."""

REPORT_SECONDS = 10.0
"""Maximum age in seconds of the phases in an answer with series: the shortest window of telemetry/windows.py. To judge
the telemetry of a day takes longer than to read what is new."""

LIVE_SECONDS = 30.0
"""A run with a last record older than this is not live; the monitor writes every few seconds."""

_log = logging.getLogger(__name__)


class TelemetryEntry:
    """One event file of a monitor: its reader, and the report about the part that was read. Each entry has its own
    lock."""

    def __init__(self, recording: RecordingFile) -> None:
        # Imported here, because this import also imports the rules, which only servers with telemetry need.
        from tb_bottleneck.diagnosis.telemetry import TelemetryReader

        self.lock = threading.Lock()
        self.recording = recording
        self.reader = TelemetryReader(recording.path, follow_links=False)  # a scan has resolved the path
        self._report: Report | None = None
        self._report_key: tuple[int, bool] | None = None
        self._report_made_at = 0.0

    @property
    def judged_live(self) -> bool:
        """True if the last report was made of a live run. A run may end while its report is made."""
        return self._report_key is not None and self._report_key[1]

    def update(self) -> Report:
        """Reads what was added to the file, and returns a report that may be up to REPORT_SECONDS old. The caller holds
        the lock."""
        if self._report is None or time.monotonic() - self._report_made_at > REPORT_SECONDS:
            return self.report()
        from tb_bottleneck.diagnosis.telemetry import read_all

        return read_all(self.reader, run=self.recording.run) or self._report

    def report(self) -> Report:
        """Reads what was added to the file, and returns the report. While the run is live, the report is about its last
        phase; afterwards, the report is about the whole run. The caller holds the lock."""
        from tb_bottleneck.diagnosis.telemetry import judge_telemetry, read_all

        failed = read_all(self.reader, run=self.recording.run)
        if failed is not None:
            return failed
        live = is_live(last_record(self.reader.telemetry))
        key = (self.reader.position[0], live)
        if self._report is None or self._report_key != key:
            self._report = judge_telemetry(self.reader, run=self.recording.run, latest=live)
            self._report_key, self._report_made_at = key, time.monotonic()
        return self._report


class TelemetryRegistry:
    """The telemetry files under the logdir, with their digests and reports. Any thread may call every method."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: LruCache[str, TelemetryEntry] = LruCache(CACHED_FILES)
        # By path: the judged recording, or None if it has to be judged again; its digest; the time of its last record.
        self._digests: dict[str, tuple[RecordingFile | None, Digest, int]] = {}
        self._wanted: frozenset[RecordingFile] = frozenset()
        self._stale: dict[str, RecordingFile] = {}  # the files that must be judged, new or changed, by path
        self._thread: threading.Thread | None = None
        self._closed = False

    def want(self, recordings: Iterable[RecordingFile]) -> None:
        """Makes `recordings` the only files to read, and drops the results of all others."""
        wanted = frozenset(recordings)
        with self._lock:
            if wanted is not self._wanted:
                self._replace(wanted)
            if self._thread is None and not self._closed and self._stale:
                self._thread = threading.Thread(target=self._judge_changed, name="tb_bottleneck-telemetry", daemon=True)
                self._thread.start()

    def look(self, recording: RecordingFile) -> tuple[AnalysisState, Digest | None]:
        """Returns the progress of `recording`, and the digest (key values) of its report; None if there is no digest
        yet.

        If the run has ended or resumed since the digest was made, also queues the file of `recording` for a new
        diagnosis.
        """
        with self._lock:
            judged = self._digests.get(recording.path)
            if judged is None:
                return WAITING, None
            _, digest, last = judged
            live = is_live(last)
            if digest.live != live:
                digest = replace(digest, live=live)
                self._digests[recording.path] = None, digest, last
                self._stale[recording.path] = recording
            return DONE, digest

    def report(self, recording: RecordingFile) -> Report:
        """Reads what was added to the file of `recording` since the last call, and returns a copy of its report."""
        entry = self.entry(recording)
        with entry.lock:
            report = Report()
            report.CopyFrom(entry.report())
        return report

    def entry(self, recording: RecordingFile) -> TelemetryEntry:
        """Returns the entry of the file of `recording`. The caller must hold the entry's lock while it uses the
        entry."""
        with self._lock:
            entry = self._entries.get(recording.path)
            if entry is None:
                entry = TelemetryEntry(recording)
                self._entries.put(recording.path, entry)
            return entry

    def close(self) -> None:
        """Ends the background thread, and returns after the thread has ended."""
        with self._lock:
            self._closed = True
            thread = self._thread
        if thread is not None:
            thread.join()

    def _replace(self, wanted: frozenset[RecordingFile]) -> None:
        """Makes `wanted` the only files to read. The caller holds the lock."""
        self._wanted, digests = wanted, self._digests
        by_path = {recording.path: recording for recording in wanted}
        for unwanted in digests.keys() - by_path.keys():
            del digests[unwanted]
        self._entries.keep(by_path.__contains__)
        self._stale = {
            path: recording
            for path, recording in by_path.items()
            if path not in digests or digests[path][0] != recording
        }

    def _judge_changed(self) -> None:
        """Judges the files that changed, the newest first, until no changed file is left. Runs in a thread of its
        own."""
        while True:
            with self._lock:
                if self._closed or not self._stale:
                    self._thread = None
                    return
                recording = max(self._stale.values(), key=lambda each: each.mtime_ns)
            digest, last = self._judge(recording)
            with self._lock:
                self._digests[recording.path] = recording, digest, last
                if self._stale.get(recording.path) == recording:
                    del self._stale[recording.path]

    def _judge(self, recording: RecordingFile) -> tuple[Digest, int]:
        from tb_bottleneck.diagnosis.telemetry import unreadable

        entry = self.entry(recording)
        with entry.lock:
            try:
                report = entry.report()
            except MemoryError:
                _log.exception("There is not enough memory for the telemetry of one run")
                because = f"{recording.source}: there is not enough memory for it"
                report = unreadable(entry.reader, recording.run, "unreadable", because)
            return replace(Digest.of(report), live=entry.judged_live), last_record(entry.reader.telemetry)


def last_record(telemetry: "Telemetry") -> int:
    """Returns the time of the run's last record in ns since 1970; 0 if the monitor recorded that the run ended."""
    return 0 if telemetry.ended else telemetry.last


def is_live(last: int) -> bool:
    """Returns True if `last`, the time of a run's last record in ns since 1970, is less than LIVE_SECONDS from now."""
    return abs(time.time() - last / 1e9) < LIVE_SECONDS
