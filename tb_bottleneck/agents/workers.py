"""Runs analyses and questions in worker processes, with progress, while the server answers other calls.

The worker processes run the same program as those of the plugin, with the same limits on memory and time. They do not
follow symbolic links. They end when the server ends. If a call is cancelled, the worker process that it uses is ended.
"""

import asyncio
import contextlib
import os
import queue
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from tb_bottleneck.base.errors import Unusable
from tb_bottleneck.plugin.workers.ipc import Refusal, WorkerFailure, WorkerLimits, as_report
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


class _Call:
    """One use of a worker process by a request. Any thread may call `cancel`."""

    def __init__(self) -> None:
        self.share = 0.0
        self._lock = threading.Lock()
        self._process: WorkerProcess | None = None
        self.cancelled = False

    def begin(self, process: WorkerProcess) -> bool:
        """Assigns `process` to the call. Returns False if the call was cancelled before it began."""
        with self._lock:
            self._process = process
            return not self.cancelled

    def progress(self, share: float) -> None:
        """Stores `share`, the completed fraction (0 to 1). Ends the process if the call was cancelled while the process
        started."""
        self.share = share
        if self.cancelled and self._process is not None:
            self._process.interrupt()

    def cancel(self) -> None:
        """Ends the process if the call has begun. Otherwise, the call will not begin."""
        with self._lock:
            self.cancelled = True
            if self._process is not None:
                self._process.interrupt()

    def end(self) -> None:
        """Releases the process, so that a later `cancel` does not end it."""
        with self._lock:
            self._process = None


class _Pool:
    """Worker processes of one kind. One call at a time uses a process. Calls wait in the order in which they came."""

    def __init__(self, task: Task, function: str, limits: WorkerLimits) -> None:
        self._processes = [WorkerProcess(task, function, limits) for _ in range(limits.processes)]
        self._free: queue.SimpleQueue[WorkerProcess] = queue.SimpleQueue()
        for process in self._processes:
            self._free.put(process)
        self._threads = ThreadPoolExecutor(limits.processes, thread_name_prefix=f"tb_bottleneck-{task}")

    async def run(
        self, use: Callable[[WorkerProcess, Callable[[float], None]], Result], tell: Tell
    ) -> Result | WorkerFailure:
        call = _Call()
        future = asyncio.wrap_future(self._threads.submit(self._use, call, use))
        try:
            while not (await asyncio.wait([future], timeout=PROGRESS_SECONDS))[0]:
                await tell(call.share)
            return future.result()
        finally:
            if not future.done():
                call.cancel()

    def _use(
        self, call: _Call, use: Callable[[WorkerProcess, Callable[[float], None]], Result]
    ) -> Result | WorkerFailure:
        process = self._free.get()
        try:
            if not call.begin(process):
                return WorkerFailure("worker_died", "the call was cancelled")
            return use(process, call.progress)
        finally:
            call.end()
            self._free.put(process)

    def close(self) -> None:
        for process in self._processes:
            process.kill()
        self._threads.shutdown(wait=False, cancel_futures=True)


class Workers:
    """The worker processes of one server. They start when they are first needed."""

    def __init__(self, limits: WorkerLimits | None = None) -> None:
        used = limits or WorkerLimits.from_environment(os.environ)
        used = replace(used, processes=max(used.processes, MIN_PROCESSES))
        self._analyses = _Pool("analyse_recordings", ANALYSE, used)
        self._questions = _Pool("answer_questions", ANSWER, used)

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
    return process.analyse(recording, on_progress)


def _ask(
    question: RecordingQuestion, process: WorkerProcess, on_progress: Callable[[float], None]
) -> bytes | Refusal | WorkerFailure:
    return process.ask(question, on_progress)
