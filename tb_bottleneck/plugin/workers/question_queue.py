"""Answers questions about recordings in a few worker processes.

    ask(question, client) ──▶ waiting ──▶ running (pool.py) ──▶ replies (cached, up to REPLY_BYTES)

These processes are not those that analyse recordings. Therefore they answer at once while analyses run, and only they
keep traces in memory. A slot starts if no slot is idle and a waiting question may be answered now. A question that no
client asks any more is dropped; if a process is answering the question, this process is ended.
"""

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import partial

from tb_bottleneck.plugin.workers.analysis_queue import WAITING, AnalysisState
from tb_bottleneck.plugin.workers.questions import RecordingQuestion, encode, paths_of
from tb_bottleneck.workers.ipc import Refusal, WorkerFailure, WorkerLimits
from tb_bottleneck.workers.pool import WorkerPool
from tb_bottleneck.workers.process import Reply, Task, WorkerProcess

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
    one client, the newest is next, because the user is looking at the view that needs its answer.

    A schedule has no lock; its owner must hold one.
    """

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

    def slots(self) -> set[Slot]:
        """Returns the slots whose processes have files in memory."""
        return set(self._read_by)

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

ANSWER = "tb_bottleneck.plugin.workers.handlers:answer_questions"
"""The handler of questions."""


@dataclass
class _Interest:
    """How many requests wait for the reply to a question now, and when the last request ended (monotonic clock,
    seconds)."""

    requests: int = 0
    ended: float = 0.0


class QuestionQueue(WorkerPool[RecordingQuestion, Reply]):
    """Answers questions in worker processes, and caches the replies. Any thread may call every public method."""

    def __init__(self, answer: str, limits: WorkerLimits) -> None:
        super().__init__(Task(ANSWER, (answer,)), replace(limits, seconds_per_file=SECONDS_PER_QUESTION))
        self._schedule = QuestionSchedule()
        self._interest: dict[RecordingQuestion, _Interest] = {}  # in the waiting and the running questions
        self._replies: OrderedDict[RecordingQuestion, Reply] = OrderedDict()
        self._failed_at: dict[RecordingQuestion, float] = {}
        self._bytes = 0

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

    def _idle(self) -> set[threading.Thread]:
        return self._slots.keys() - {slot for slot, _ in self._schedule.running.values()}

    def _start_slots(self) -> None:
        self._changed.notify_all()
        for ended in self._schedule.slots() - self._slots.keys():
            self._schedule.forget(ended)
        idle = self._idle()
        if not (self._closed or idle or len(self._slots) >= PROCESSES or self._schedule.next(None, idle) is None):
            self._start_slot()

    def _has_next(self) -> bool:
        return self._schedule.next(threading.current_thread(), self._idle()) is not None

    def _pop(self) -> RecordingQuestion | None:
        slot = threading.current_thread()
        question = self._schedule.next(slot, self._idle())
        if question is not None:
            self._schedule.start(question, slot)
        return question

    def _run(self, worker: WorkerProcess, request: RecordingQuestion) -> Reply:
        return worker.run(encode(request), partial(self._advance, request))

    def _drop_abandoned(self) -> None:
        """Drops the questions that no client has asked for ABANDONED_SECONDS. The caller holds the lock."""
        now = time.monotonic()
        for question, interest in list(self._interest.items()):
            if interest.requests or now - interest.ended < ABANDONED_SECONDS:
                continue
            del self._interest[question]
            self._schedule.waiting.pop(question, None)
            if question in self._progress:
                self._interrupt(question)

    def _end(self, request: RecordingQuestion, outcome: Reply, interrupted: bool) -> None:
        client = self._schedule.end(request)
        if interrupted and isinstance(outcome, WorkerFailure):
            self._ask_again(request, client)
            return
        self._interest.pop(request, None)
        self._replies[request] = outcome
        self._bytes += _size(request, outcome)
        if isinstance(outcome, WorkerFailure):
            self._failed_at[request] = time.monotonic()
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
