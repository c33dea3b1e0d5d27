"""Analyses many recordings in local worker processes, with limits on memory and time."""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from dataclasses import asdict

from tb_bottleneck.jobs.execution.rank_analysis import RankResult, Task, analyse, failed_result
from tb_bottleneck.workers import process
from tb_bottleneck.workers.ipc import WorkerFailure, WorkerLimits
from tb_bottleneck.workers.pool import FirstComePool

HANDLER = "tb_bottleneck.jobs.execution.local:rank_handler"
TRANSIENT = frozenset({"worker_died", "worker_not_started"})
"""Codes of failures that may not be due to the recording: someone ended the process, or the system had no memory. The
recording is analysed again."""


def analyse_in_processes(
    tasks: Sequence[Task],
    limits: WorkerLimits,
    progress: Callable[[int, int], None],
    handler: str = HANDLER,
    arguments: tuple[str, ...] = (),
) -> list[RankResult]:
    """Analyses the recordings of `tasks` in as many processes as `limits` allow, and returns one result per task, in
    the order of `tasks`.

    `progress` is called with the number of finished tasks and the number of all tasks. A failure costs only its own
    recording. If an exception such as KeyboardInterrupt is raised, all processes are ended. `handler` and `arguments`
    are those of the worker processes.
    """
    results: dict[int, RankResult] = {}
    waiting = list(range(len(tasks)))
    for last in (False, True):
        pool = FirstComePool(process.Task(handler, arguments), limits)
        failed = []
        try:
            calls = {pool.submit(json.dumps(asdict(tasks[at])).encode()).reply: at for at in waiting}
            for reply in as_completed(calls):
                at, outcome = calls[reply], reply.result()
                if isinstance(outcome, WorkerFailure) and outcome.code in TRANSIENT and not last:
                    failed.append(at)
                    continue
                results[at] = _decoded(outcome) if isinstance(outcome, bytes) else failed_result(tasks[at], outcome)
                progress(len(results), len(tasks))
        finally:
            pool.close()
        waiting = sorted(failed)
    return [results[at] for at in range(len(tasks))]


def rank_handler() -> Callable[[bytes, Callable[[int, int], None]], bytes]:
    """Returns the handler of the worker processes: it takes an encoded Task, and returns an encoded RankResult."""
    return lambda request, progress: encoded(analyse(Task(**json.loads(request)), progress))


def encoded(result: RankResult) -> bytes:
    """Returns `result` as bytes: a line of JSON, then the report and the summary."""
    return json.dumps([len(result.report), result.problem]).encode() + b"\n" + result.report + result.summary


def _decoded(answer: bytes) -> RankResult:
    head, _, content = answer.partition(b"\n")
    length, problem = json.loads(head)
    return RankResult(content[:length], content[length:], problem)
