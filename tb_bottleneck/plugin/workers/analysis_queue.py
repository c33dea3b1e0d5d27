"""The queue of recordings to analyse, the worker processes that analyse them, and their results.

    want(recordings) ──▶ waiting ──▶ running (a thread and its process, per slot) ──▶ digest (kept) + report (cached)

A digest is a short summary of a report. The recording that was requested last is analysed first, then the newest. A
slot starts when there is work, and ends when there was none for a while. An analysis is ended if its file was replaced,
grew or went away, or if no client asks any more; in the last case no other analysis starts.
"""

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count

from tb_bottleneck.plugin.state.run_index import LruCache
from tb_bottleneck.plugin.workers.ipc import WorkerLimits, as_report
from tb_bottleneck.plugin.workers.worker_client import Outcome, WorkerProcess
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.sources.logdir import RecordingFile

_Aged = tuple[int, str, int, RecordingFile]
"""An entry of a heap: minus the time of change of the file, so that the newest file is first; its path; a unique
number, because the same recording may be added again before its first entry is dropped; and the recording."""


class WaitingRecordings:
    """The recordings that wait for their analysis, in the order in which they will be analysed.

    Requested recordings come first, the latest request before earlier ones; then the newest recordings. All methods
    except `all` and `replace` take about the same time for ten recordings as for ten thousand. Not thread-safe."""

    def __init__(self) -> None:
        self._waiting: set[RecordingFile] = set()
        self._asked: dict[RecordingFile, None] = {}  # by time of the last request; some do not wait any more
        self._aged: list[_Aged] = []  # a heap; some do not wait any more
        self._numbers = count()

    def __len__(self) -> int:
        return len(self._waiting)

    def all(self) -> frozenset[RecordingFile]:
        """Returns all waiting recordings."""
        return frozenset(self._waiting)

    def add(self, recording: RecordingFile) -> None:
        """Adds a recording, if it is not yet in the queue."""
        if recording not in self._waiting:
            self._waiting.add(recording)
            heappush(self._aged, self._aged_entry(recording))

    def ask_for(self, recording: RecordingFile) -> None:
        """Adds a recording if it is not yet in the queue, and moves it to the first position."""
        self.add(recording)
        self._asked.pop(recording, None)
        self._asked[recording] = None

    def replace(self, recordings: frozenset[RecordingFile]) -> None:
        """Makes `recordings` the only waiting recordings. Those that were requested before stay first."""
        self._waiting = set(recordings)
        self._asked = {each: None for each in self._asked if each in recordings}
        self._aged = [self._aged_entry(each) for each in recordings]
        heapify(self._aged)

    def take(self) -> RecordingFile:
        """Removes the first recording from the queue and returns it. Raises IndexError if the queue is empty."""
        while self._asked:
            recording = self._asked.popitem()[0]
            if recording in self._waiting:
                self._waiting.remove(recording)
                return recording
        while True:
            recording = heappop(self._aged)[-1]
            if recording in self._waiting:
                self._waiting.remove(recording)
                return recording

    def _aged_entry(self, recording: RecordingFile) -> _Aged:
        return -recording.mtime_ns, recording.path, next(self._numbers), recording


REPORTS_KEPT = 256  # about 50 KB each; a dropped report is built again on request
GROWING = "growing"
"""The health reason code of a file that is still being written: reading it again later may succeed."""
TRANSIENT = frozenset({"worker_died", "worker_not_started"})
"""Reason codes of failures that may not be due to the file: someone ended the process, or the system had no memory."""
MAX_RETRIES = 2
"""Maximum number of retries after a transient failure. After more failures, the file is the likely reason."""


@dataclass(frozen=True)
class AnalysisState:
    """The progress of one recording's analysis. `name` is "waiting", "analysing" or "done"; `progress` is the completed
    fraction, 0 to 1."""

    name: str
    progress: float


WAITING = AnalysisState("waiting", 0.0)
DONE = AnalysisState("done", 1.0)


class AnalysisQueue:
    """The queue of recordings, its slots (pairs of a thread and a worker process) and their results, behind one lock.
    Any thread may call every method."""

    def __init__(self, analyse: str, limits: WorkerLimits) -> None:
        self._analyse = analyse
        self._limits = limits
        self._changed = threading.Condition()
        self._wanted: frozenset[RecordingFile] = frozenset()
        self._on_request: frozenset[RecordingFile] = frozenset()  # those that are analysed only after a request
        self._waiting = WaitingRecordings()
        self._requested_at: dict[RecordingFile, float] = {}
        self._running: dict[RecordingFile, AnalysisState] = {}
        self._workers: dict[RecordingFile, WorkerProcess] = {}  # of the recordings that are running
        self._interrupted: set[RecordingFile] = set()  # running, but no longer wanted
        self._digests: dict[RecordingFile, Digest] = {}
        self._retry_at: dict[RecordingFile, float] = {}
        self._retries: dict[RecordingFile, int] = {}  # after transient failures
        self._reports: LruCache[RecordingFile, Report] = LruCache(REPORTS_KEPT)
        self._slots: dict[threading.Thread, WorkerProcess] = {}
        self._last_request = time.monotonic()
        self._closed = False

    def want(self, recordings: Iterable[RecordingFile], on_request: frozenset[RecordingFile] = frozenset()) -> None:
        """Makes `recordings` the only recordings to analyse, and drops the results of all others.

        Recordings in `on_request` are only analysed after `report` was called for them. If nothing changed, the call
        only records that a client still asks."""
        wanted = frozenset(recordings)
        with self._changed:
            self._last_request = now = time.monotonic()
            if wanted is not self._wanted or on_request is not self._on_request:
                self._replace(wanted, on_request)
            due = {recording for recording, at in self._retry_at.items() if at <= now} - self._running.keys()
            for each in due:
                if each not in on_request or each in self._requested_at:
                    self._waiting.add(each)
            self._start_slots()

    def report(self, recording: RecordingFile) -> Report | AnalysisState:
        """Returns the report of `recording`. If there is none yet, makes the recording the next one to analyse, and
        returns the progress of its analysis."""
        with self._changed:
            report = self._reports.get(recording)
            if report is not None:
                return report
            self._requested_at[recording] = self._last_request = time.monotonic()
            if recording not in self._running:
                self._waiting.ask_for(recording)
                self._start_slots()
            return self._running.get(recording, WAITING)

    def look(self, recording: RecordingFile) -> tuple[AnalysisState, Digest | None]:
        """Returns the progress of the analysis of `recording`, and its digest; None if there is no digest yet. Changes
        nothing."""
        with self._changed:
            digest = self._digests.get(recording)
            return (DONE if digest else self._running.get(recording, WAITING)), digest

    def close(self) -> None:
        """Ends all slots (threads) and their worker processes. Returns when all have ended."""
        with self._changed:
            self._closed = True
            slots = dict(self._slots)
            self._changed.notify_all()
        for thread, worker in slots.items():
            worker.kill()
            thread.join()

    def _replace(self, wanted: frozenset[RecordingFile], on_request: frozenset[RecordingFile]) -> None:
        """Makes `wanted` the only recordings to analyse, those in `on_request` only on request. The caller holds the
        lock."""
        self._wanted, self._on_request = wanted, on_request
        for by_recording in (self._digests, self._requested_at, self._retry_at, self._retries):
            for unwanted in by_recording.keys() - wanted:
                del by_recording[unwanted]
        self._reports.keep(wanted.__contains__)
        waiting = (self._waiting.all() | wanted - self._digests.keys()) & wanted - self._running.keys()
        self._waiting.replace(waiting - (on_request - self._requested_at.keys()))
        for superseded in self._running.keys() - wanted:
            self._interrupt(superseded)

    def _start_slots(self) -> None:
        """Wakes the idle slots (pairs of a thread and a worker process), and starts more if needed. The caller holds
        the lock."""
        self._changed.notify_all()
        idle = len(self._slots) - len(self._running)
        missing = min(len(self._waiting) - idle, self._limits.processes - len(self._slots))
        for _ in range(0 if self._closed or self._is_abandoned() else missing):
            worker = WorkerProcess("analyse_recordings", self._analyse, self._limits)
            thread = threading.Thread(target=self._serve, args=(worker,), name="tb_bottleneck-slot", daemon=True)
            self._slots[thread] = worker
            thread.start()

    def _serve(self, worker: WorkerProcess) -> None:
        """Analyses recordings with `worker` until there is no work for some time. The thread of each slot runs this."""
        while (recording := self._take(worker)) is not None:
            outcome = worker.analyse(recording, partial(self._advance, recording))
            self._finish(recording, outcome)
        worker.rest()
        with self._changed:
            del self._slots[threading.current_thread()]
            self._start_slots()  # work may have come while the process ended

    def _is_abandoned(self) -> bool:
        return time.monotonic() - self._last_request > self._limits.abandoned_seconds

    def _interrupt(self, recording: RecordingFile) -> None:
        """Stops the running analysis of `recording`. The caller holds the lock."""
        if recording not in self._interrupted:
            self._interrupted.add(recording)
            self._workers[recording].interrupt()

    def _take(self, worker: WorkerProcess) -> RecordingFile | None:
        """Returns the next recording for `worker`. Returns None if there is none for some time, or the queue is
        closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._waiting, self._limits.idle_seconds)
            if self._closed or not self._waiting or self._is_abandoned():
                return None
            recording = self._waiting.take()
            self._running[recording] = AnalysisState("analysing", 0.0)
            self._workers[recording] = worker
            return recording

    def _advance(self, recording: RecordingFile, share: float) -> None:
        with self._changed:
            self._running[recording] = AnalysisState("analysing", share)
            if self._is_abandoned():
                self._interrupt(recording)

    def _finish(self, recording: RecordingFile, outcome: Outcome) -> None:
        report = outcome if isinstance(outcome, Report) else as_report(recording, outcome)
        digest = Digest.of(report)
        with self._changed:
            del self._running[recording], self._workers[recording]
            was_interrupted = recording in self._interrupted and not isinstance(outcome, Report)
            self._interrupted.discard(recording)
            if recording not in self._wanted:
                return  # the file changed or went away in the meantime
            if was_interrupted:
                self._waiting.add(recording)  # for the next client
                return
            self._digests[recording] = digest
            self._reports.put(recording, report)
            self._retry_at.pop(recording, None)
            delay = self._retry_delay(recording, {reason.code for reason in report.health.reasons})
            if delay is not None:
                self._retry_at[recording] = time.monotonic() + delay

    def _retry_delay(self, recording: RecordingFile, reasons: set[str]) -> float | None:
        """Returns the number of seconds after which `recording` is read again; None if its result is final. Counts the
        retry. `reasons` are the codes of the problems that the report states."""
        if GROWING in reasons:
            return self._limits.retry_seconds
        retries = self._retries.get(recording, 0)
        if not reasons & TRANSIENT or retries >= MAX_RETRIES:
            return None
        self._retries[recording] = retries + 1
        return float(self._limits.retry_seconds * 2**retries)
