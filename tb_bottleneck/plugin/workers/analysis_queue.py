"""The queue of recordings to analyse, the worker processes that analyse them, and their results.

    want(recordings) ──▶ waiting ──▶ running (pool.py) ──▶ digest (kept) + report (cached)

A digest is a short summary of a report. The recording that was requested last is analysed first, then the newest. An
analysis is ended if its file was replaced, grew or went away, or if no client asks any more; in the last case no other
analysis starts.
"""

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import count
from typing import NamedTuple

from google.protobuf.message import DecodeError

from tb_bottleneck.plugin.state.run_index import LruCache
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.sources.logdir import RecordingFile
from tb_bottleneck.workers.ipc import Refusal, WorkerFailure, WorkerLimits, failure_report
from tb_bottleneck.workers.pool import WorkerPool
from tb_bottleneck.workers.process import Reply, Task, WorkerProcess

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


ANALYSE = "tb_bottleneck.plugin.workers.handlers:analyse_recordings"
"""The handler of requests for reports."""

WHOLE, LISTED = b"R", b"L"
"""The first byte of the answer to such a request: before a whole report, and before the parts that a list shows."""


def report_request(recording: RecordingFile, for_list: bool = False) -> bytes:
    """Returns the request for the report of `recording`. With `for_list`, a report that is stored next to the recording
    suffices."""
    names = {"path": recording.path, "run": recording.run, "source": recording.source}
    return json.dumps({**names, "for_list": for_list}).encode()


class Analysis(NamedTuple):
    """The result for one recording: its digest, and its report, or None if only the digest was stored next to it.
    `failed` is True if the worker process made no report."""

    digest: Digest
    report: Report | None
    failed: bool = False

    @classmethod
    def of(cls, recording: RecordingFile, reply: Reply) -> "Analysis":
        """Returns the result for `recording` from the reply to its `report_request`."""
        if isinstance(reply, bytes):
            try:
                report = Report.FromString(reply[1:])
                return cls(Digest.of(report), report if reply[:1] == WHOLE else None)
            except DecodeError:
                reply = WorkerFailure("worker_died", "the worker process sent an invalid reply")
        failure = WorkerFailure("analysis_failed", reply.sentence) if isinstance(reply, Refusal) else reply
        report = failure_report(recording.run, recording.source, recording.kind, failure)
        return cls(Digest.of(report), report, failed=True)


class AnalysisQueue(WorkerPool[RecordingFile, Analysis]):
    """The queue of recordings and the results of their analyses. Any thread may call every public method."""

    def __init__(self, analyse: str, limits: WorkerLimits) -> None:
        super().__init__(Task(ANALYSE, (analyse,)), limits)
        self._wanted: frozenset[RecordingFile] = frozenset()
        self._on_request: frozenset[RecordingFile] = frozenset()  # those that are analysed only after a request
        self._waiting = WaitingRecordings()
        self._requested_at: dict[RecordingFile, float] = {}
        self._digests: dict[RecordingFile, Digest] = {}
        self._retry_at: dict[RecordingFile, float] = {}
        self._retries: dict[RecordingFile, int] = {}  # after transient failures
        self._reports: LruCache[RecordingFile, Report] = LruCache(REPORTS_KEPT)
        self._last_request = time.monotonic()

    def want(self, recordings: Iterable[RecordingFile], on_request: frozenset[RecordingFile] = frozenset()) -> None:
        """Makes `recordings` the only recordings to analyse, and drops the results of all others.

        Recordings in `on_request` are only analysed after `report` was called for them. If nothing changed, the call
        only records that a client still asks."""
        wanted = frozenset(recordings)
        with self._changed:
            self._last_request = now = time.monotonic()
            if wanted is not self._wanted or on_request is not self._on_request:
                self._replace(wanted, on_request)
            due = {recording for recording, at in self._retry_at.items() if at <= now} - self._progress.keys()
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
            if recording not in self._progress:
                self._waiting.ask_for(recording)
                self._start_slots()
            return self._state(recording)

    def look(self, recording: RecordingFile) -> tuple[AnalysisState, Digest | None]:
        """Returns the progress of the analysis of `recording`, and its digest; None if there is no digest yet. Changes
        nothing."""
        with self._changed:
            digest = self._digests.get(recording)
            return (DONE if digest else self._state(recording)), digest

    def _replace(self, wanted: frozenset[RecordingFile], on_request: frozenset[RecordingFile]) -> None:
        """Makes `wanted` the only recordings to analyse, those in `on_request` only on request. The caller holds the
        lock."""
        self._wanted, self._on_request = wanted, on_request
        for by_recording in (self._digests, self._requested_at, self._retry_at, self._retries):
            for unwanted in by_recording.keys() - wanted:
                del by_recording[unwanted]
        self._reports.keep(wanted.__contains__)
        waiting = (self._waiting.all() | wanted - self._digests.keys()) & wanted - self._progress.keys()
        self._waiting.replace(waiting - (on_request - self._requested_at.keys()))
        for superseded in self._progress.keys() - wanted:
            self._interrupt(superseded)

    def _start_slots(self) -> None:
        self._changed.notify_all()
        idle = len(self._slots) - len(self._progress)
        missing = min(len(self._waiting) - idle, self._limits.processes - len(self._slots))
        for _ in range(0 if self._closed or self._is_abandoned() else missing):
            self._start_slot()

    def _is_abandoned(self) -> bool:
        return time.monotonic() - self._last_request > self._limits.abandoned_seconds

    def _has_next(self) -> bool:
        return len(self._waiting) > 0

    def _pop(self) -> RecordingFile | None:
        return self._waiting.take() if self._waiting and not self._is_abandoned() else None

    def _run(self, worker: WorkerProcess, request: RecordingFile) -> Analysis:
        for_list = request not in self._requested_at
        reply = worker.run(report_request(request, for_list), partial(self._advance, request))
        return Analysis.of(request, reply)

    def _advance(self, request: RecordingFile, share: float) -> None:
        super()._advance(request, share)
        with self._changed:
            if self._is_abandoned():
                self._interrupt(request)

    def _end(self, request: RecordingFile, outcome: Analysis, interrupted: bool) -> None:
        if request not in self._wanted:
            return  # the file changed or went away in the meantime
        if interrupted and outcome.failed:
            self._waiting.add(request)  # for the next client
            return
        self._digests[request] = outcome.digest
        self._retry_at.pop(request, None)
        if outcome.report is None:
            self._reports.keep(lambda each: each != request)  # it may be the report of an earlier failure
            return
        self._reports.put(request, outcome.report)
        delay = self._retry_delay(request, {reason.code for reason in outcome.report.health.reasons})
        if delay is not None:
            self._retry_at[request] = time.monotonic() + delay

    def _state(self, recording: RecordingFile) -> AnalysisState:
        share = self._progress.get(recording)
        return WAITING if share is None else AnalysisState("analysing", share)

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
