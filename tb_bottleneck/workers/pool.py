"""Worker processes that take requests as long as there are any.

    a queue of requests ──▶ a slot (a thread and its process) ──▶ the queue gets the outcome

A subclass is the queue: it decides which request is next. A slot starts when the queue asks for it, and ends when no
request came for a while. `interrupt` ends the process that handles a request. `FirstComePool` is the simplest queue;
those of the tab are in plugin/workers.
"""

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Hashable
from concurrent.futures import Future
from functools import partial
from typing import Generic, TypeVar

from tb_bottleneck.base.errors import Unusable
from tb_bottleneck.workers.ipc import WorkerLimits
from tb_bottleneck.workers.process import Reply, Task, WorkerProcess

Request = TypeVar("Request", bound=Hashable)
Outcome = TypeVar("Outcome")


class WorkerPool(ABC, Generic[Request, Outcome]):
    """The slots of one kind of worker process, and the requests that they handle, behind one lock.

    Any thread may call the public methods. The lock is held during calls of the abstract methods except `_run`.
    """

    def __init__(self, task: Task, limits: WorkerLimits) -> None:
        self._task = task
        self._limits = limits
        self._changed = threading.Condition()
        self._slots: dict[threading.Thread, WorkerProcess] = {}
        self._progress: dict[Request, float] = {}  # of the running requests: the share that is done, 0 to 1
        self._workers: dict[Request, WorkerProcess] = {}  # of the running requests
        self._interrupted: set[Request] = set()  # running, but their process was ended
        self._closed = False

    @abstractmethod
    def _has_next(self) -> bool:
        """Returns True if the slot of this thread should handle a request now. Changes nothing."""

    @abstractmethod
    def _pop(self) -> Request | None:
        """Removes the request that the slot of this thread should handle now, and returns it; None if there is none."""

    @abstractmethod
    def _run(self, worker: WorkerProcess, request: Request) -> Outcome:
        """Returns the outcome of `request`. Never raises."""

    @abstractmethod
    def _end(self, request: Request, outcome: Outcome, interrupted: bool) -> None:
        """Stores the outcome. `interrupted` is True if the process was ended by `_interrupt`."""

    @abstractmethod
    def _start_slots(self) -> None:
        """Wakes the idle slots, and starts more with `_start_slot` if needed."""

    def close(self) -> None:
        """Ends all slots and their worker processes. Returns when all have ended."""
        with self._changed:
            self._closed = True
            slots = dict(self._slots)
            self._changed.notify_all()
        for thread, worker in slots.items():
            worker.kill()
            thread.join()

    def _start_slot(self) -> None:
        worker = WorkerProcess(self._task, self._limits)
        name = f"tb_bottleneck-{self._task.handler.rpartition(':')[2]}"
        thread = threading.Thread(target=self._serve, args=(worker,), name=name, daemon=True)
        self._slots[thread] = worker
        thread.start()

    def _serve(self, worker: WorkerProcess) -> None:
        """Handles requests with `worker` until none comes for some time. The thread of each slot runs this."""
        while (request := self._take(worker)) is not None:
            outcome = self._run(worker, request)
            with self._changed:
                del self._progress[request], self._workers[request]
                interrupted = request in self._interrupted
                self._interrupted.discard(request)
                self._end(request, outcome, interrupted)
        worker.rest()
        with self._changed:
            del self._slots[threading.current_thread()]
            self._start_slots()  # a request may have come while the process ended

    def _take(self, worker: WorkerProcess) -> Request | None:
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._has_next(), self._limits.idle_seconds)
            request = None if self._closed else self._pop()
            if request is not None:
                self._progress[request], self._workers[request] = 0.0, worker
                self._start_slots()  # the other requests may need another slot
            return request

    def _advance(self, request: Request, share: float) -> None:
        with self._changed:
            self._progress[request] = share
            if request in self._interrupted:  # before the process had started
                self._workers[request].interrupt()

    def _interrupt(self, request: Request) -> None:
        """Ends the process that handles `request`. The caller holds the lock."""
        if request not in self._interrupted:
            self._interrupted.add(request)
            self._workers[request].interrupt()


class Call:
    """A request in a FirstComePool, and its reply in the future."""

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.reply: Future[Reply] = Future()


class FirstComePool(WorkerPool[Call, Reply]):
    """Handles requests in the order in which they come."""

    def __init__(self, task: Task, limits: WorkerLimits) -> None:
        super().__init__(task, limits)
        self._waiting: deque[Call] = deque()

    def submit(self, request: bytes) -> Call:
        """Adds a request. Raises Unusable if the pool is closed."""
        call = Call(request)
        with self._changed:
            if self._closed:
                raise Unusable("the server is closing")
            self._waiting.append(call)
            self._start_slots()
        return call

    def progress(self, call: Call) -> float | None:
        """Returns the completed fraction (0 to 1) of a request that is being handled, otherwise None."""
        return self._progress.get(call)

    def cancel(self, call: Call) -> None:
        """Removes a request that waits; ends the process that handles the request."""
        with self._changed:
            if call in self._waiting:
                self._waiting.remove(call)
            elif call in self._workers:
                self._interrupt(call)

    def close(self) -> None:
        """Ends all processes. Requests that wait are cancelled."""
        with self._changed:
            for call in self._waiting:
                call.reply.cancel()
            self._waiting.clear()
        super().close()

    def _start_slots(self) -> None:
        self._changed.notify_all()
        idle = len(self._slots) - len(self._progress)
        if not self._closed and len(self._waiting) > idle and len(self._slots) < self._limits.processes:
            self._start_slot()

    def _has_next(self) -> bool:
        return bool(self._waiting)

    def _pop(self) -> Call | None:
        while self._waiting:
            if (call := self._waiting.popleft()).reply.set_running_or_notify_cancel():
                return call
        return None

    def _run(self, worker: WorkerProcess, request: Call) -> Reply:
        return worker.run(request.request, partial(self._advance, request))

    def _end(self, request: Call, outcome: Reply, interrupted: bool) -> None:
        request.reply.set_result(outcome)
