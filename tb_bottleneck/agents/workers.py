"""Runs analyses and questions in worker processes, with progress, while the server answers other calls.

The worker processes run the same program as those of the plugin, with the same limits on memory and time. They do not
follow symbolic links. They end when the server ends. If a call is cancelled, the worker process that it uses is ended.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace

from tb_bottleneck.base.errors import Unusable
from tb_bottleneck.plugin.workers.analysis_queue import ANALYSE, Analysis, report_request
from tb_bottleneck.plugin.workers.question_queue import ANSWER
from tb_bottleneck.plugin.workers.questions import RecordingQuestion, encode
from tb_bottleneck.schema.bottleneck_pb2 import Report
from tb_bottleneck.sources.logdir import RecordingFile
from tb_bottleneck.workers.ipc import Refusal, WorkerFailure, WorkerLimits
from tb_bottleneck.workers.pool import FirstComePool
from tb_bottleneck.workers.process import Reply, Task

PROGRESS_SECONDS = 0.5
MIN_PROCESSES = 2
"""Minimum number of processes of each kind, so that one large recording does not delay the calls about others."""

_ANALYSES = Task(ANALYSE, ("tb_bottleneck.agents.any_recording:diagnose_any",))
_QUESTIONS = Task(ANSWER, ("tb_bottleneck.plugin.workers.dispatch:answer",))

Tell = Callable[[float], Awaitable[None]]
"""A function that tells the client the share of the work that is done, from 0 to 1."""


class Workers:
    """The worker processes of one server. They start when they are first needed."""

    def __init__(self, limits: WorkerLimits | None = None) -> None:
        used = limits or WorkerLimits.from_environment(os.environ)
        used = replace(used, processes=max(used.processes, MIN_PROCESSES))
        self._analyses, self._questions = FirstComePool(_ANALYSES, used), FirstComePool(_QUESTIONS, used)

    async def report(self, recording: RecordingFile, tell: Tell) -> Report:
        """Returns the report of `recording`. If the analysis failed, `health` of the report gives the reason."""
        reply = await _reply(self._analyses, report_request(recording), tell)
        report = Analysis.of(recording, reply).report
        assert report is not None, "a whole report was requested"
        return report

    async def ask(self, question: RecordingQuestion, tell: Tell) -> bytes:
        """Returns the answer to `question`, as JSON.

        Raises:
            Unusable: the question cannot be answered; the message says why.
        """
        reply = await _reply(self._questions, encode(question), tell)
        if isinstance(reply, WorkerFailure | Refusal):
            raise Unusable(reply.sentence if isinstance(reply, Refusal) else f"{reply.detail} [{reply.code}]")
        return reply

    def close(self) -> None:
        """Ends all processes. Calls in progress fail."""
        for pool in (self._analyses, self._questions):
            with contextlib.suppress(OSError):
                pool.close()


async def _reply(pool: FirstComePool, request: bytes, tell: Tell) -> Reply:
    """Returns the reply to `request`. `tell` gets the progress. If the caller is cancelled, the process that handles
    the request is ended."""
    call, share = pool.submit(request), 0.0
    future = asyncio.wrap_future(call.reply)
    try:
        while not (await asyncio.wait([future], timeout=PROGRESS_SECONDS))[0]:
            share = pool.progress(call) or share
            await tell(share)
        return future.result()
    finally:
        if not future.done():
            pool.cancel(call)
