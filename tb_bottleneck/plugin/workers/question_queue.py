"""The queue in front of the process that answers questions about recordings and keeps their traces in memory.

    ask(question) ──▶ waiting (newest first) ──▶ the process ──▶ replies (cached, up to a number of bytes)

A process of its own answers questions at once, while the analyses of other recordings run; and the processes that
analyse keep no traces. It starts with the first question, and ends when no question came for a while.
"""

import threading
import time
from collections import OrderedDict
from dataclasses import replace

from tb_bottleneck.plugin.workers.analysis_queue import WAITING, AnalysisState
from tb_bottleneck.plugin.workers.failures import Refusal, WorkerFailure
from tb_bottleneck.plugin.workers.questions import RecordingQuestion, encode
from tb_bottleneck.plugin.workers.worker_client import Reply, WorkerProcess
from tb_bottleneck.plugin.workers.worker_limits import WorkerLimits

PATIENCE_SECONDS = 2.0
"""Maximum time that a request waits for its reply; then the client has to ask again. A browser has six connections."""
WAITING_LIMIT = 64  # a tab does not withdraw its questions, so the oldest ones are dropped
REPLY_BYTES = 48 << 20
BYTES_PER_REPLY = 2000  # estimate for the objects of a question and its entries
FAILURE_SECONDS = 5.0  # a failure is repeated for this long, then the question is tried again
SECONDS_PER_QUESTION = 300.0


class QuestionQueue:
    """Any thread may call every method."""

    def __init__(self, answer: str, limits: WorkerLimits) -> None:
        limits = replace(limits, seconds_per_file=SECONDS_PER_QUESTION)
        self._worker = WorkerProcess("answer_questions", answer, limits)
        self._idle_seconds = limits.idle_seconds
        self._changed = threading.Condition()
        self._waiting: OrderedDict[RecordingQuestion, None] = OrderedDict()
        self._running: RecordingQuestion | None = None
        self._progress = 0.0
        self._replies: OrderedDict[RecordingQuestion, Reply] = OrderedDict()
        self._failed_at: dict[RecordingQuestion, float] = {}
        self._bytes = 0
        self._thread: threading.Thread | None = None
        self._closed = False

    def ask(self, question: RecordingQuestion, patience: float = PATIENCE_SECONDS) -> Reply | AnalysisState:
        """Waits up to `patience` seconds for the reply. If there is none by then, returns the progress."""
        with self._changed:
            self._forget_old_failure(question)
            if question not in self._replies and question != self._running:
                self._waiting[question] = None
                self._waiting.move_to_end(question)
                if len(self._waiting) > WAITING_LIMIT:
                    self._waiting.popitem(last=False)
                self._start()
            self._changed.wait_for(lambda: question in self._replies or self._closed, patience)
            if question in self._replies:
                self._replies.move_to_end(question)
                return self._replies[question]
            return AnalysisState("analysing", self._progress) if question == self._running else WAITING

    def close(self) -> None:
        """Ends the process; returns when it is gone."""
        with self._changed:
            self._closed = True
            thread = self._thread
            self._changed.notify_all()
        self._worker.kill()
        if thread is not None:
            thread.join()

    def _start(self) -> None:
        """Starts the thread if there is none. The caller holds the lock."""
        self._changed.notify_all()
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._serve, name="tb_bottleneck-questions", daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        while (question := self._take()) is not None:
            self._keep(question, self._worker.ask(question, self._advance))
        self._worker.rest()
        with self._changed:
            self._thread = None
            if self._waiting:
                self._start()  # a question may have come while the process ended

    def _take(self) -> RecordingQuestion | None:
        """Returns the newest question, or None if none came for a while."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._waiting, self._idle_seconds)
            if self._closed or not self._waiting:
                return None
            self._running, _ = self._waiting.popitem()
            self._progress = 0.0
            return self._running

    def _advance(self, share: float) -> None:
        with self._changed:
            self._progress = share

    def _keep(self, question: RecordingQuestion, reply: Reply) -> None:
        with self._changed:
            self._running = None
            self._replies[question] = reply
            self._bytes += _size(question, reply)
            if isinstance(reply, WorkerFailure):
                self._failed_at[question] = time.monotonic()
            while self._bytes > REPLY_BYTES and len(self._replies) > 1:
                oldest, old_reply = self._replies.popitem(last=False)
                self._failed_at.pop(oldest, None)
                self._bytes -= _size(oldest, old_reply)
            self._changed.notify_all()

    def _forget_old_failure(self, question: RecordingQuestion) -> None:
        if time.monotonic() - self._failed_at.get(question, float("inf")) > FAILURE_SECONDS:
            del self._failed_at[question]
            self._bytes -= _size(question, self._replies.pop(question))


def _size(question: RecordingQuestion, reply: Reply) -> int:
    """Returns the memory of a cached reply in bytes, roughly. The question counts: it may be longer than the reply."""
    match reply:
        case bytes():
            length = len(reply)
        case Refusal():
            length = len(reply.sentence)
        case WorkerFailure():
            length = len(reply.detail)
    return BYTES_PER_REPLY + len(encode(question)) + length
