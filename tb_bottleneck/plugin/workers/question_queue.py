"""Questions about recordings, asked of one process of their own that keeps the last recordings read.

    ask(question) ──▶ waiting (newest first) ──▶ the process ──▶ replies (kept, up to so many bytes)

So a close look never waits for the analyses of other recordings, and their processes never hold a trace for it. The
process starts with the first question and ends when there was none for a while.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tb_bottleneck.plugin.workers.failures import WorkerFailure
from tb_bottleneck.plugin.workers.worker_client import Reply, WorkerProcess
from tb_bottleneck.plugin.workers.worker_limits import WorkerLimits

PATIENCE_SECONDS = 2.0
"""How long one request waits for its reply before it is told to ask again; a browser has six connections to us."""
MOST_WAITING = 64  # a tab that moves on does not withdraw its questions: the oldest are forgotten
BYTES_KEPT = 48 << 20
KEPT_FOR_EACH = 2000  # bytes: a question of a dozen names and numbers
FAILURE_SECONDS = 5.0  # a failure is told again for so long, then the question is tried again
SECONDS_PER_QUESTION = 300.0

Question = tuple[tuple[str, str | float | None], ...]


@dataclass(frozen=True)
class Pending:
    """There is no reply yet; `progress` is how far the recording has been read, 0 to 1."""

    waiting: bool
    progress: float


class QuestionQueue:
    """Every method may be called by any thread."""

    def __init__(self, answer: str, limits: WorkerLimits) -> None:
        self._worker = WorkerProcess(answer, replace(limits, seconds_per_file=SECONDS_PER_QUESTION))
        self._idle_seconds = limits.idle_seconds
        self._changed = threading.Condition()
        self._waiting: OrderedDict[Question, None] = OrderedDict()
        self._running: Question | None = None
        self._progress = 0.0
        self._replies: OrderedDict[Question, Reply] = OrderedDict()
        self._failed_at: dict[Question, float] = {}
        self._bytes = 0
        self._thread: threading.Thread | None = None
        self._closed = False

    def ask(self, question: Mapping[str, str | float | None], patience: float = PATIENCE_SECONDS) -> Reply | Pending:
        """The reply, waited for up to `patience` seconds; where it is not there then, ask again."""
        key: Question = tuple(sorted(question.items()))
        with self._changed:
            self._forget_old_failure(key)
            if key not in self._replies and key != self._running:
                self._waiting[key] = None
                self._waiting.move_to_end(key)
                if len(self._waiting) > MOST_WAITING:
                    self._waiting.popitem(last=False)
                self._start()
            self._changed.wait_for(lambda: key in self._replies or self._closed, patience)
            if key in self._replies:
                self._replies.move_to_end(key)
                return self._replies[key]
            running = key == self._running
            return Pending(not running, self._progress if running else 0.0)

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
        """Starts the thread where there is none. The caller holds the lock."""
        self._changed.notify_all()
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._serve, name="tb_bottleneck-questions", daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        while (key := self._take()) is not None:
            self._keep(key, self._worker.ask(dict(key), self._advance))
        self._worker.rest()
        with self._changed:
            self._thread = None
            if self._waiting:
                self._start()  # a question may have come while the process ended

    def _take(self) -> Question | None:
        """The newest question; None where there was none for a while."""
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

    def _keep(self, key: Question, reply: Reply) -> None:
        with self._changed:
            self._running = None
            self._replies[key] = reply
            self._bytes += _size(key, reply)
            if isinstance(reply, WorkerFailure):
                self._failed_at[key] = time.monotonic()
            while self._bytes > BYTES_KEPT and len(self._replies) > 1:
                gone, old = self._replies.popitem(last=False)
                self._failed_at.pop(gone, None)
                self._bytes -= _size(gone, old)
            self._changed.notify_all()

    def _forget_old_failure(self, key: Question) -> None:
        if time.monotonic() - self._failed_at.get(key, float("inf")) > FAILURE_SECONDS:
            del self._failed_at[key]
            self._bytes -= _size(key, self._replies.pop(key))


def _size(question: Question, reply: Reply) -> int:
    """What keeping it takes, about: thousands of small replies to long questions are not little either."""
    asked = sum(len(value) for _, value in question if isinstance(value, str))
    return KEPT_FOR_EACH + asked + (len(reply) if isinstance(reply, bytes) else len(reply.detail))
