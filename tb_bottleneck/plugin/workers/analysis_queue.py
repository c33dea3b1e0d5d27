"""Which recording is analysed next, by how many processes, and what came of the others.

    want(recordings) ──▶ waiting ──▶ running (a thread and its process, per slot) ──▶ digest (kept) + report (cached)

The recording that was asked for last goes first, then the newest. A slot starts when there is work and ends when
there was none for a while. Nothing is read for nobody: what runs is ended where its file was replaced, grew or went
away, and where nobody asks any more; nothing else is begun then.
"""

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from tb_bottleneck.plugin.state.lru import LruCache
from tb_bottleneck.plugin.workers.failures import as_report
from tb_bottleneck.plugin.workers.worker_client import Outcome, WorkerProcess
from tb_bottleneck.plugin.workers.worker_limits import WorkerLimits
from tb_bottleneck.schema.bottleneck_pb2 import AccountRow, Report, Verdict
from tb_bottleneck.sources.logdir import Recording

REPORTS_KEPT = 256  # some 50 KB each; a report that was forgotten is made again when somebody asks for it
GROWING = "growing"
"""The health reason code of a file that is still being written: reading it again later may succeed."""


@dataclass(frozen=True)
class Digest:
    """What the list of recordings shows of a report; kept for every recording that is listed."""

    health: str
    reason: str
    verdict: Verdict | None
    step_ns: float | None
    step_times_ns: tuple[float, ...] = ()
    rank: int | None = None
    world_size: int = 0
    account: tuple[AccountRow, ...] = ()  # of a rank of several; else it is not kept
    live: bool = False  # telemetry that still grows

    @classmethod
    def of(cls, report: Report) -> "Digest":
        """The digest of a report, absent parts staying absent."""
        reasons = report.health.reasons
        return cls(
            health=report.health.status,
            reason=reasons[0].code if reasons else "",
            verdict=report.verdict if report.HasField("verdict") else None,
            step_ns=report.window.step_ns.median if report.window.HasField("step_ns") else None,
            step_times_ns=tuple(report.window.step_times_ns),
            rank=report.rank if report.HasField("rank") else None,
            world_size=report.world_size,
            account=tuple(report.account) if report.world_size > 1 else (),
        )


@dataclass(frozen=True)
class AnalysisState:
    """How far one recording is: waiting | analysing | done, and the share done, 0 to 1."""

    name: str
    progress: float


_AGE = attrgetter("mtime_ns", "path")  # thousands may wait, and each that is taken compares them all

WAITING = AnalysisState("waiting", 0.0)
DONE = AnalysisState("done", 1.0)


class AnalysisQueue:
    """The queue, its slots and its results, behind one lock. Every method may be called by any thread."""

    def __init__(self, analyse: str, limits: WorkerLimits) -> None:
        self._analyse = analyse
        self._limits = limits
        self._changed = threading.Condition()
        self._wanted: frozenset[Recording] = frozenset()
        self._waiting: set[Recording] = set()
        self._asked: dict[Recording, float] = {}
        self._running: dict[Recording, AnalysisState] = {}
        self._readers: dict[Recording, WorkerProcess] = {}  # of what is running
        self._given_up: set[Recording] = set()  # is running, and was told to end
        self._digests: dict[Recording, Digest] = {}
        self._retry_at: dict[Recording, float] = {}
        self._reports: LruCache[Recording, Report] = LruCache(REPORTS_KEPT)
        self._slots: dict[threading.Thread, WorkerProcess] = {}
        self._last_asked = time.monotonic()
        self._closed = False

    def want(self, recordings: Iterable[Recording]) -> None:
        """Makes these, and only these, the recordings to be analysed; what is known of others is forgotten."""
        with self._changed:
            self._wanted = wanted = frozenset(recordings)
            for known in (self._digests, self._asked, self._retry_at):
                for gone in known.keys() - wanted:
                    del known[gone]
            self._reports.keep(wanted.__contains__)
            self._last_asked = now = time.monotonic()
            due = {recording for recording, at in self._retry_at.items() if at <= now}
            self._waiting = (self._waiting | wanted - self._digests.keys() | due) & wanted - self._running.keys()
            for superseded in self._running.keys() - wanted:
                self._give_up(superseded)
            self._start_slots()

    def ask(self, recording: Recording) -> tuple[AnalysisState, Report | None]:
        """How far this recording is, and its report once there is one. It goes to the head of the queue."""
        with self._changed:
            report = self._reports.get(recording)
            if report is not None:
                return DONE, report
            self._asked[recording] = self._last_asked = time.monotonic()
            if recording not in self._running:
                self._waiting.add(recording)
                self._start_slots()
            return self._running.get(recording, WAITING), None

    def look(self, recording: Recording) -> tuple[AnalysisState, Digest | None]:
        """How far this recording is, and its digest once there is one. Changes nothing."""
        with self._changed:
            digest = self._digests.get(recording)
            return (DONE if digest else self._running.get(recording, WAITING)), digest

    def close(self) -> None:
        """Ends every slot and its process; returns when they are gone."""
        with self._changed:
            self._closed = True
            slots = dict(self._slots)
            self._changed.notify_all()
        for thread, worker in slots.items():
            worker.kill()
            thread.join()

    def _start_slots(self) -> None:
        """Wakes the slots and starts those that are missing. The caller holds the lock."""
        self._changed.notify_all()
        idle = len(self._slots) - len(self._running)
        missing = min(len(self._waiting) - idle, self._limits.processes - len(self._slots))
        for _ in range(0 if self._closed or self._is_forsaken() else missing):
            worker = WorkerProcess(self._analyse, self._limits)
            thread = threading.Thread(target=self._serve, args=(worker,), name="tb_bottleneck-slot", daemon=True)
            self._slots[thread] = worker
            thread.start()

    def _serve(self, worker: WorkerProcess) -> None:
        """One slot's life."""
        while (recording := self._take(worker)) is not None:
            outcome = worker.analyse(recording, partial(self._advance, recording))
            self._finish(recording, outcome)
        worker.rest()
        with self._changed:
            del self._slots[threading.current_thread()]
            self._start_slots()  # work may have come while the process ended

    def _is_forsaken(self) -> bool:
        return time.monotonic() - self._last_asked > self._limits.forsaken_seconds

    def _give_up(self, recording: Recording) -> None:
        """Ends the analysis that runs. The caller holds the lock."""
        if recording not in self._given_up:
            self._given_up.add(recording)
            self._readers[recording].interrupt()

    def _take(self, worker: WorkerProcess) -> Recording | None:
        """The next recording; None where there was none for a while."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._waiting, self._limits.idle_seconds)
            if self._closed or not self._waiting or self._is_forsaken():
                return None
            asked = self._asked.keys() & self._waiting
            recording = max(asked, key=self._asked.__getitem__) if asked else max(self._waiting, key=_AGE)
            self._waiting.remove(recording)
            self._running[recording] = AnalysisState("analysing", 0.0)
            self._readers[recording] = worker
            return recording

    def _advance(self, recording: Recording, share: float) -> None:
        with self._changed:
            self._running[recording] = AnalysisState("analysing", share)
            if self._is_forsaken():
                self._give_up(recording)

    def _finish(self, recording: Recording, outcome: Outcome) -> None:
        report = outcome if isinstance(outcome, Report) else as_report(recording, outcome)
        with self._changed:
            del self._running[recording], self._readers[recording]
            ended = recording in self._given_up and not isinstance(outcome, Report)
            self._given_up.discard(recording)
            if recording not in self._wanted:
                return  # the file changed or went away meanwhile
            if ended:
                self._waiting.add(recording)  # for whoever comes back
                return
            self._digests[recording] = Digest.of(report)
            self._reports.put(recording, report)
            self._retry_at.pop(recording, None)
            if any(reason.code == GROWING for reason in report.health.reasons):
                self._retry_at[recording] = time.monotonic() + self._limits.retry_seconds
