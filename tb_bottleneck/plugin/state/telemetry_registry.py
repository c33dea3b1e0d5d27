"""The telemetry of runs, in memory while somebody looks: what was added to a file is all that is read again.

    want(recordings) ──▶ a thread listens to those that changed, and judges them ──▶ digest (kept)
    report, answer   ──▶ the listener (the last ones asked for are kept), brought up to date first

An event file grows while its training runs, so that reading it from its beginning each time would cost more and more.
"""

import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tb_bottleneck.plugin.state.lru import LruCache
from tb_bottleneck.plugin.workers.analysis_queue import DONE, WAITING, AnalysisState, Digest
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.sources.logdir import Recording

if TYPE_CHECKING:
    from tb_bottleneck.telemetry.telemetry import Telemetry

LISTENERS_KEPT = 4
"""Each takes some 150 MB after a day; one that was let go is read again from its beginning."""

JUDGED_SECONDS = 10.0
"""Who asks for series gets stretches that may be this old: one window, and judging a day takes longer than reading."""

LIVE_SECONDS = 30.0
"""A run of which nothing was heard for longer is not live; the monitor writes every few seconds."""

_log = logging.getLogger(__name__)


class TelemetryEntry:
    """What is known of one file: its listener, and the judgement of what it heard. Behind its own lock."""

    def __init__(self, recording: Recording) -> None:
        from tb_bottleneck.diagnosis.telemetry import Listener  # a server without telemetry starts without the rules

        self.lock = threading.Lock()
        self.recording = recording
        self.listener = Listener(recording.path)
        self._report: Report | None = None
        self._judged: tuple[int, bool] | None = None
        self._judged_at = 0.0

    def brought_up_to_date(self) -> Report:
        """What the file holds now is heard; the report may be some seconds older. The caller holds the lock."""
        if self._report is None or time.monotonic() - self._judged_at > JUDGED_SECONDS:
            return self.report()
        from tb_bottleneck.diagnosis.telemetry import unheard

        return unheard(self.listener, run=self.recording.run) or self._report

    def report(self) -> Report:
        """The report of what the file holds now, of its last stretch while it is live. The caller holds the lock."""
        from tb_bottleneck.diagnosis.telemetry import judge_telemetry, unheard

        failed = unheard(self.listener, run=self.recording.run)
        if failed is not None:
            return failed
        live = is_live(last_sign(self.listener.telemetry))
        if self._report is None or self._judged != (self.listener.heard[0], live):
            self._report = judge_telemetry(self.listener, run=self.recording.run, latest=live)
            self._judged, self._judged_at = (self.listener.heard[0], live), time.monotonic()
        return self._report


class TelemetryRegistry:
    """The telemetry under the logdir. Every method may be called by any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._heard: LruCache[str, TelemetryEntry] = LruCache(LISTENERS_KEPT)
        # What was judged, None where it is to be judged again; the digest; when it last gave a sign.
        self._digests: dict[str, tuple[Recording | None, Digest, int]] = {}
        self._wanted: dict[str, Recording] = {}
        self._thread: threading.Thread | None = None
        self._closed = False

    def want(self, recordings: Iterable[Recording]) -> None:
        """Makes these, and only these, the files to be listened to; what is known of others is forgotten."""
        with self._lock:
            self._wanted = {recording.path: recording for recording in recordings}
            for gone in self._digests.keys() - self._wanted.keys():
                del self._digests[gone]
            self._heard.keep(self._wanted.__contains__)
            if self._thread is None and not self._closed and self._next() is not None:
                self._thread = threading.Thread(target=self._listen, name="tb_bottleneck-listen", daemon=True)
                self._thread.start()

    def look(self, recording: Recording) -> tuple[AnalysisState, Digest | None]:
        """Whether it was judged, and its digest once it was. One that is live no more will be judged as a whole."""
        with self._lock:
            known = self._digests.get(recording.path)
            if known is None:
                return WAITING, None
            _, digest, last = known
            live = is_live(last)
            if digest.live != live:
                digest = replace(digest, live=live)
                self._digests[recording.path] = None, digest, last
            return DONE, digest

    def report(self, recording: Recording) -> Report:
        """The report of what the file holds now."""
        heard = self.heard(recording)
        with heard.lock:
            report = Report()
            report.CopyFrom(heard.report())
        return report

    def heard(self, recording: Recording) -> TelemetryEntry:
        """What is known of this file; its lock is to be held for whatever is asked of it."""
        with self._lock:
            known = self._heard.get(recording.path)
            if known is None:
                known = TelemetryEntry(recording)
                self._heard.put(recording.path, known)
            return known

    def close(self) -> None:
        """Ends the thread; returns when it is gone."""
        with self._lock:
            self._closed = True
            thread = self._thread
        if thread is not None:
            thread.join()

    def _next(self) -> Recording | None:
        """The newest of the files that changed since they were judged. The caller holds the lock."""
        known = self._digests
        stale = [one for path, one in self._wanted.items() if path not in known or known[path][0] != one]
        return max(stale, key=lambda recording: recording.mtime_ns, default=None)

    def _listen(self) -> None:
        """Judges what changed, one file after the other, and leaves."""
        while True:
            with self._lock:
                recording = None if self._closed else self._next()
                if recording is None:
                    self._thread = None
                    return
            digest, last = self._judge(recording)
            with self._lock:
                self._digests[recording.path] = recording, digest, last

    def _judge(self, recording: Recording) -> tuple[Digest, int]:
        from tb_bottleneck.diagnosis.telemetry import unreadable

        heard = self.heard(recording)
        with heard.lock:
            try:
                report = heard.report()
            except MemoryError:
                _log.exception("there is not enough memory for the telemetry of one run")
                because = f"{recording.source}: there is not enough memory for it"
                report = unreadable(heard.listener, recording.run, "unreadable", because)
            last = last_sign(heard.listener.telemetry)
            return replace(Digest.of(report), live=is_live(last)), last


def last_sign(telemetry: "Telemetry") -> int:
    """When the run last gave a sign of life, ns since 1970; 0 where its monitor said that it ended."""
    return 0 if telemetry.ended else telemetry.last


def is_live(last: int) -> bool:
    """Whether something that happened at `last` (ns since 1970) is recent."""
    return abs(time.time() - last / 1e9) < LIVE_SECONDS
