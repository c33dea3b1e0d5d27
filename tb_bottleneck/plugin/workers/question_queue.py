"""Answers questions about recordings in a few worker processes.

    ask(question, client) ──▶ waiting ──▶ a slot (a thread and its process) ──▶ replies (cached, up to REPLY_BYTES)

These processes are not those that analyse recordings. Therefore they answer at once while analyses run, and only they
keep traces in memory. A slot starts if no slot is idle and a waiting question may be answered now. A slot ends when no
question came for a while. A question that no client asks any more is dropped; if a process is answering the question,
this process is ended.
"""

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from tb_bottleneck.plugin.workers.analysis_queue import WAITING, AnalysisState
from tb_bottleneck.plugin.workers.ipc import Refusal, WorkerFailure, WorkerLimits
from tb_bottleneck.plugin.workers.questions import RecordingQuestion, encode, paths_of
from tb_bottleneck.plugin.workers.worker_client import Reply, WorkerProcess

WAITING_LIMIT = 64  # a tab does not withdraw its questions, so old ones are dropped
MAX_PER_CLIENT = 2
"""Maximum number of questions of one client that are answered at the same time: fewer than there are processes."""

Slot = Hashable


class QuestionSchedule:
    """The waiting and the running questions. Decides which question a worker process answers next.

    No recording and no client can occupy all processes. Questions about one file are answered one after the other: the
    first one reads the file, and a damaged file occupies only one process. A question about a file goes to the process
    that has the file in memory, if that process is idle. The client with the fewest running questions is next; if
    several clients have equally few, the client whose last question started longest ago is next. Of the questions of
    one client, the newest is next, because its answer is on the screen.

    A schedule has no lock; its owner must hold one."""

    def __init__(self) -> None:
        self.waiting: OrderedDict[RecordingQuestion, str] = OrderedDict()  # maps questions to clients
        self.running: dict[RecordingQuestion, tuple[Slot, str]] = {}
        self._read_by: dict[Slot, frozenset[str]] = {}  # the files of the last question of each process
        self._turns = 0
        self._last_turn: dict[str, int] = {}

    def add(self, question: RecordingQuestion, client: str) -> None:
        """Adds a question of `client`, or makes it the newest one. If too many questions wait, drops the oldest
        question of the client with the most questions."""
        self.waiting[question] = client
        self.waiting.move_to_end(question)
        if len(self.waiting) > WAITING_LIMIT:
            busiest = Counter(self.waiting.values()).most_common(1)[0][0]
            del self.waiting[next(each for each, asked_by in self.waiting.items() if asked_by == busiest)]

    def next(self, slot: Slot, idle: Iterable[Slot]) -> RecordingQuestion | None:
        """Returns the question that the process of `slot` should answer; None if the process should wait. `slot` is
        None for a slot that does not exist yet. `idle` are all slots whose processes have no question."""
        busy = frozenset[str]().union(*map(paths_of, self.running))
        elsewhere = frozenset[str]().union(*(self._read_by.get(other, frozenset()) for other in idle if other != slot))
        elsewhere -= self._read_by.get(slot, frozenset())
        running = Counter(client for _, client in self.running.values())
        clients = [client for client in dict.fromkeys(self.waiting.values()) if running[client] < MAX_PER_CLIENT]
        for client in sorted(clients, key=lambda client: (running[client], self._last_turn.get(client, 0))):
            for question in reversed([each for each, asked_by in self.waiting.items() if asked_by == client]):
                if not paths_of(question) & (busy | elsewhere):
                    return question
        return None

    def start(self, question: RecordingQuestion, slot: Slot) -> None:
        """Moves `question` from the waiting to the running questions. The process of `slot` answers it."""
        client = self.waiting.pop(question)
        self.running[question] = slot, client
        self._read_by[slot] = paths_of(question)
        self._turns += 1
        self._last_turn[client] = self._turns
        if len(self._last_turn) > WAITING_LIMIT:
            del self._last_turn[min(self._last_turn, key=self._last_turn.__getitem__)]

    def end(self, question: RecordingQuestion) -> str:
        """Removes `question` from the running questions, answered or not. Returns the client that asked it."""
        _, client = self.running.pop(question)
        return client

    def forget(self, slot: Slot) -> None:
        """Removes the record of which files the process of `slot` has in memory. Must be called when the process has
        ended."""
        self._read_by.pop(slot, None)


PROCESSES = 3
PATIENCE_SECONDS = 2.0
"""Maximum time that a request waits for its reply; then the client has to ask again. A waiting request occupies one of
the six connections that a browser has."""
ABANDONED_SECONDS = 10.0  # a tab asks again after a quarter of a second
REPLY_BYTES = 48 << 20
BYTES_PER_REPLY = 2000  # estimate for the objects of a question and its entries
FAILURE_SECONDS = 5.0  # a failure is the reply for this long, then the question is tried again
SECONDS_PER_QUESTION = 300.0


@dataclass
class _Interest:
    """How many requests wait for the reply to a question now, and when the last request ended (monotonic clock,
    seconds)."""

    requests: int = 0
    ended: float = 0.0


class QuestionQueue:
    """Answers questions in worker processes, and caches the replies. Any thread may call every method."""

    def __init__(self, answer: str, limits: WorkerLimits) -> None:
        self._answer = answer
        self._limits = replace(limits, seconds_per_file=SECONDS_PER_QUESTION)
        self._changed = threading.Condition()
        self._schedule = QuestionSchedule()
        self._slots: dict[threading.Thread, WorkerProcess] = {}
        self._progress: dict[RecordingQuestion, float] = {}  # of the running questions
        self._interest: dict[RecordingQuestion, _Interest] = {}  # in the waiting and the running questions
        self._interrupted: set[RecordingQuestion] = set()  # running, but abandoned
        self._replies: OrderedDict[RecordingQuestion, Reply] = OrderedDict()
        self._failed_at: dict[RecordingQuestion, float] = {}
        self._bytes = 0
        self._closed = False

    def ask(
        self, question: RecordingQuestion, client: str, patience: float = PATIENCE_SECONDS
    ) -> Reply | AnalysisState:
        """Returns the reply to `question`, or its progress if there is no reply within `patience` seconds.

        `client` identifies who asks (`client_of`). The worker processes are shared fairly among clients.
        """
        with self._changed:
            self._forget_old_failure(question)
            self._drop_abandoned()
            interest = self._interest.setdefault(question, _Interest())
            interest.requests += 1
            if question not in self._replies and question not in self._progress:
                self._schedule.add(question, client)
                self._start_slots()
            self._changed.wait_for(lambda: question in self._replies or self._closed, patience)
            interest.requests -= 1
            interest.ended = time.monotonic()
            if question in self._replies:
                self._interest.pop(question, None)
                self._replies.move_to_end(question)
                return self._replies[question]
            share = self._progress.get(question)
            return WAITING if share is None else AnalysisState("analysing", share)

    def close(self) -> None:
        """Ends the worker processes, and returns after all have ended."""
        with self._changed:
            self._closed = True
            slots = dict(self._slots)
            self._changed.notify_all()
        for thread, worker in slots.items():
            worker.kill()
            thread.join()

    def _idle(self) -> set[threading.Thread]:
        return self._slots.keys() - {slot for slot, _ in self._schedule.running.values()}

    def _start_slots(self) -> None:
        """Wakes the idle slots (pairs of a thread and a worker process). If there are none and a question could be
        answered, starts another slot. The caller holds the lock."""
        self._changed.notify_all()
        idle = self._idle()
        if self._closed or idle or len(self._slots) >= PROCESSES or self._schedule.next(None, idle) is None:
            return
        worker = WorkerProcess("answer_questions", self._answer, self._limits)
        thread = threading.Thread(target=self._serve, args=(worker,), name="tb_bottleneck-questions", daemon=True)
        self._slots[thread] = worker
        thread.start()

    def _serve(self, worker: WorkerProcess) -> None:
        """Answers questions with `worker` until none comes for some time. The thread of each slot runs this."""
        while (question := self._take()) is not None:
            self._keep(question, worker.ask(question, partial(self._advance, question)))
        worker.rest()
        with self._changed:
            slot = threading.current_thread()
            del self._slots[slot]
            self._schedule.forget(slot)
            self._start_slots()  # a question may have come while the process ended

    def _take(self) -> RecordingQuestion | None:
        """Returns the next question for this thread's slot. Returns None if none comes for some time, or the queue is
        closed."""
        slot = threading.current_thread()
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or self._schedule.next(slot, self._idle()) is not None, self._limits.idle_seconds
            )
            question = None if self._closed else self._schedule.next(slot, self._idle())
            if question is not None:
                self._schedule.start(question, slot)
                self._progress[question] = 0.0
                self._start_slots()  # the other questions may need another slot
            return question

    def _advance(self, question: RecordingQuestion, share: float) -> None:
        with self._changed:
            self._progress[question] = share

    def _drop_abandoned(self) -> None:
        """Drops the questions that no client has asked for ABANDONED_SECONDS. The caller holds the lock."""
        now = time.monotonic()
        for question, interest in list(self._interest.items()):
            if interest.requests or now - interest.ended < ABANDONED_SECONDS:
                continue
            del self._interest[question]
            self._schedule.waiting.pop(question, None)
            if question in self._progress and question not in self._interrupted:
                self._interrupted.add(question)
                slot, _ = self._schedule.running[question]
                self._slots[slot].interrupt()  # type: ignore[index]  # slots are threads

    def _keep(self, question: RecordingQuestion, reply: Reply) -> None:
        with self._changed:
            client = self._schedule.end(question)
            del self._progress[question]
            if question in self._interrupted and isinstance(reply, WorkerFailure):
                self._interrupted.discard(question)
                self._ask_again(question, client)
                return
            self._interrupted.discard(question)
            self._interest.pop(question, None)
            self._replies[question] = reply
            self._bytes += _size(question, reply)
            if isinstance(reply, WorkerFailure):
                self._failed_at[question] = time.monotonic()
            while self._bytes > REPLY_BYTES and len(self._replies) > 1:
                oldest, old_reply = self._replies.popitem(last=False)
                self._failed_at.pop(oldest, None)
                self._bytes -= _size(oldest, old_reply)
            self._changed.notify_all()

    def _ask_again(self, question: RecordingQuestion, client: str) -> None:
        """Puts `question` of `client` back into the queue if a client has asked it again since its worker process was
        interrupted. The caller holds the lock."""
        if question in self._interest:
            self._schedule.add(question, client)
        self._start_slots()

    def _forget_old_failure(self, question: RecordingQuestion) -> None:
        if time.monotonic() - self._failed_at.get(question, float("inf")) > FAILURE_SECONDS:
            del self._failed_at[question]
            self._bytes -= _size(question, self._replies.pop(question))


def _size(question: RecordingQuestion, reply: Reply) -> int:
    """Returns roughly how many bytes a cached question and its reply take. The question is included, because it may be
    longer than the reply."""
    match reply:
        case bytes():
            length = len(reply)
        case Refusal():
            length = len(reply.sentence)
        case WorkerFailure():
            length = len(reply.detail)
    return BYTES_PER_REPLY + len(encode(question)) + length
