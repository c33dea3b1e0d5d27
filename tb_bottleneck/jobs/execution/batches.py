"""Runs the analyses of many recordings on an executor, and returns the results in the order of the tasks.

If a worker dies, only the recording that killed the worker is lost. All recordings of failed batches run again, one by
one.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, as_completed

from tb_bottleneck.jobs.execution.rank_analysis import RankResult, Task, analyse
from tb_bottleneck.report.builders.report_builder import ReportIdentity, unreadable_report

# Largest number of tasks in a batch. A batch of this size takes at least about a second, so the time to dispatch it
# (about 10 ms on Dask) does not matter.
MAX_BATCH = 32
# Batches per worker: enough to even out recordings of different size.
BATCHES_PER_WORKER = 4

OpenExecutor = Callable[[], Executor]
_Batch = tuple[int, ...]


def analyse_in_batches(
    tasks: Sequence[Task], open_executor: OpenExecutor, workers: int, progress: Callable[[int, int], None]
) -> list[RankResult]:
    """Analyses the recordings of `tasks` on an executor with `workers` workers, and returns one result per task, in the
    order of `tasks`.

    `open_executor` opens an executor. It may be called several times, because a broken executor is replaced. `progress`
    is called with the number of finished tasks and the number of all tasks. If an exception such as KeyboardInterrupt
    is raised, the tasks that have not started are cancelled.
    """
    size = max(min(len(tasks) // (workers * BATCHES_PER_WORKER), MAX_BATCH), 1)
    batches: list[_Batch] = [tuple(range(at, min(at + size, len(tasks)))) for at in range(0, len(tasks), size)]
    results: dict[int, RankResult] = {}

    def run(some: Sequence[_Batch]) -> list[tuple[_Batch, BaseException]]:
        return _run(tasks, some, open_executor, results, lambda: progress(len(results), len(tasks)))

    # If one process dies, all unfinished tasks of its pool fail. Failed tasks run again one by one, and tasks that fail
    # again run each in a pool of its own.
    failed = run(batches)
    failed = run([(position,) for batch, _ in failed for position in batch]) if failed else []
    for batch, _ in failed:
        for _, error in run([batch]):
            results[batch[0]] = _died(tasks[batch[0]], error)
    return [results[position] for position in range(len(tasks))]


def _run(
    tasks: Sequence[Task],
    batches: Sequence[_Batch],
    open_executor: OpenExecutor,
    results: dict[int, RankResult],
    done: Callable[[], None],
) -> list[tuple[_Batch, BaseException]]:
    """Runs `batches`, which are positions in `tasks`, on a new executor of `open_executor`, and adds the results to
    `results` by position.

    `done` is called after each batch. Returns the failed batches with their errors.
    """
    failed: list[tuple[_Batch, BaseException]] = []
    executor = open_executor()
    futures: dict[Future[list[RankResult]], _Batch] = {}
    try:
        for batch in batches:
            futures[executor.submit(analyse_batch, [tasks[position] for position in batch])] = batch
        for future in as_completed(futures):
            batch = futures.pop(future)
            error = future.exception()
            if error is None:
                results.update(zip(batch, future.result(), strict=True))
            else:
                failed.append((batch, error))
            done()
    except BaseException:
        for future in futures:
            future.cancel()
        executor.shutdown(wait=False)
        raise
    executor.shutdown()
    return sorted(failed, key=lambda entry: entry[0])


def analyse_batch(tasks: list[Task]) -> list[RankResult]:
    """Returns the results of `tasks`, one per task. This function runs in a worker."""
    return [analyse(task) for task in tasks]


def _died(task: Task, error: BaseException) -> RankResult:
    """Returns a result which reports that the analysis of `task` ended the process of its worker. `error` is the error
    of the executor."""
    identity = ReportIdentity(task.run, task.path.replace("\\", "/").rpartition("/")[2], "trace")
    report = unreadable_report(identity, "worker_died", type(error).__name__)
    return RankResult(report.SerializeToString(deterministic=True))
