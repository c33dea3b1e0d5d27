"""Runs analyses and questions in worker processes, with progress, while the server answers other calls.

The worker processes run the same program as those of the plugin, with the same limits on memory and time. They do not
follow symbolic links. They end when the server ends. If a call is cancelled, the worker process that it uses is ended.
"""

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from tb_bottleneck.base.errors import Unusable
from tb_bottleneck.plugin.workers.ipc import ListedReport, Refusal, WorkerFailure, WorkerLimits, as_report
from tb_bottleneck.plugin.workers.pool import WorkerPool
from tb_bottleneck.plugin.workers.questions import RecordingQuestion
from tb_bottleneck.plugin.workers.worker_client import Task, WorkerProcess
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.sources.logdir import RecordingFile

PROGRESS_SECONDS = 0.5
MIN_PROCESSES = 2
"""Minimum number of processes of each kind, so that one large recording does not delay the calls about others."""

ANALYSE = "tb_bottleneck.agents.any_recording:diagnose_any"
ANSWER = "tb_bottleneck.plugin.workers.dispatch:answer"

Result = TypeVar("Result")
Tell = Callable[[float], Awaitable[None]]
"""A function that tells the client the share of the work that is done, from 0 to 1."""


class _Call(Generic[Result]):
    """One use of a worker process by a request, and its result in the future."""

    def __init__(self, use: Callable[[WorkerProcess, Callable[[float], None]], Result]) -> None:
        self.use = use
        self.future: Future[Result] = Future()


class _Pool(WorkerPool[_Call[Result], Result]):
    """Worker processes of one kind. Calls wait in the order in which they came."""

    def __init__(self, task: Task, function: str, limits: WorkerLimits) -> None:
        super().__init__(task, function, limits)
        self._waiting: deque[_Call[Result]] = deque()

    async def run(self, use: Callable[[WorkerProcess, Callable[[float], None]], Result], tell: Tell) -> Result:
        """Returns the result of `use`, which gets a worker process and a callback for its progress. `tell` gets the
        progress. If the caller is cancelled, the process is ended."""
        call, share = _Call(use), 0.0
        with self._changed:
            if self._closed:
                raise Unusable("the server is closing")
            self._waiting.append(call)
            self._start_slots()
        future = asyncio.wrap_future(call.future)
        try:
            while not (await asyncio.wait([future], timeout=PROGRESS_SECONDS))[0]:
                share = self._progress.get(call, share)
                await tell(share)
            return future.result()
        finally:
            if not future.done():
                self._cancel(call)

    def close(self) -> None:
        """Ends all processes. Calls that wait are cancelled."""
        with self._changed:
            for call in self._waiting:
                call.future.cancel()
            self._waiting.clear()
        super().close()

    def _cancel(self, call: _Call[Result]) -> None:
        with self._changed:
            if call in self._waiting:
                self._waiting.remove(call)
            elif call in self._workers:
                self._interrupt(call)

    def _start_slots(self) -> None:
        self._changed.notify_all()
        idle = len(self._slots) - len(self._progress)
        if not self._closed and len(self._waiting) > idle and len(self._slots) < self._limits.processes:
            self._start_slot()

    def _has_next(self) -> bool:
        return bool(self._waiting)

    def _pop(self) -> _Call[Result] | None:
        while self._waiting:
            if (call := self._waiting.popleft()).future.set_running_or_notify_cancel():
                return call
        return None

    def _run(self, worker: WorkerProcess, request: _Call[Result]) -> Result:
        return request.use(worker, partial(self._advance, request))

    def _end(self, request: _Call[Result], outcome: Result, interrupted: bool) -> None:
        request.future.set_result(outcome)


class Workers:
    """The worker processes of one server. They start when they are first needed."""

    def __init__(self, limits: WorkerLimits | None = None) -> None:
        used = limits or WorkerLimits.from_environment(os.environ)
        used = replace(used, processes=max(used.processes, MIN_PROCESSES))
        self._analyses: _Pool[Report | WorkerFailure] = _Pool("analyse_recordings", ANALYSE, used)
        self._questions: _Pool[bytes | Refusal | WorkerFailure] = _Pool("answer_questions", ANSWER, used)

    async def report(self, recording: RecordingFile, tell: Tell) -> Report:
        """Returns the report of `recording`. If the analysis failed, `health` of the report gives the reason."""
        outcome = await self._analyses.run(partial(_analyse, recording), tell)
        return as_report(recording, outcome) if isinstance(outcome, WorkerFailure) else outcome

    async def ask(self, question: RecordingQuestion, tell: Tell) -> bytes:
        """Returns the answer to `question`, as JSON.

        Raises:
            Unusable: the question cannot be answered; the message says why.
        """
        reply = await self._questions.run(partial(_ask, question), tell)
        if isinstance(reply, WorkerFailure | Refusal):
            raise Unusable(reply.sentence if isinstance(reply, Refusal) else f"{reply.detail} [{reply.code}]")
        return reply

    def close(self) -> None:
        """Ends all processes. Calls in progress fail."""
        for pool in (self._analyses, self._questions):
            with contextlib.suppress(OSError):
                pool.close()


def _analyse(
    recording: RecordingFile, process: WorkerProcess, on_progress: Callable[[float], None]
) -> Report | WorkerFailure:
    outcome = process.analyse(recording, on_progress)
    assert not isinstance(outcome, ListedReport), "a whole report was requested"
    return outcome


def _ask(
    question: RecordingQuestion, process: WorkerProcess, on_progress: Callable[[float], None]
) -> bytes | Refusal | WorkerFailure:
    return process.ask(question, on_progress)
