"""Analyses many recordings on a Dask cluster, which Dask's own YAML files and DASK_* variables configure. This module
only connects to it, or starts one on this machine.

If a worker dies, only the recording that killed the worker is lost. All recordings of failed batches run again, one by
one.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tb_bottleneck.base.errors import NoCluster
from tb_bottleneck.jobs.execution.rank_analysis import RankResult, Task, analyse, failed_result
from tb_bottleneck.report.cache.report_store import code_version
from tb_bottleneck.sources.paths import filesystem_of, status_of
from tb_bottleneck.workers.ipc import WorkerFailure

MAX_SCHEDULER_FILE = 1 << 20
NO_DASK = 'Dask is not installed: pip install "tb_bottleneck[dask]"'


@dataclass(frozen=True)
class ClusterOptions:
    """Which Dask cluster analyses recordings; none if no value is set.

    `scheduler` is the address of a running Dask scheduler, `scheduler_file` the path of the file in which a scheduler
    has written its address. `workers` is the number of workers of a Dask cluster to start on this machine.
    """

    scheduler: str = ""
    scheduler_file: str = ""
    workers: int = 0

    @classmethod
    def of(cls, scheduler: str, scheduler_file: str, workers: int, environment: Mapping[str, str]) -> "ClusterOptions":
        """Returns the given options. If all of them are empty or 0, the address of the scheduler is taken from
        DASK_SCHEDULER_ADDRESS in `environment`, if it is set."""
        if not (scheduler or scheduler_file or workers):
            scheduler = environment.get("DASK_SCHEDULER_ADDRESS", "")
        return cls(scheduler, scheduler_file, workers)


# Largest number of tasks in a batch. A batch of this size takes at least about a second, so the time to dispatch it
# (about 10 ms on Dask) does not matter.
MAX_BATCH = 32
# Batches per worker: enough to even out recordings of different size.
BATCHES_PER_WORKER = 4

OpenExecutor = Callable[[], Executor]
_Batch = tuple[int, ...]


def analyse_on_dask(
    tasks: Sequence[Task], options: ClusterOptions, progress: Callable[[int, int], None]
) -> list[RankResult]:
    """Analyses the recordings of `tasks` on the cluster of `options`, and returns one result per task, in the order of
    `tasks`. `progress` is called with the number of finished tasks and the number of all tasks.

    Raises NotFound and NoCluster as dask_executors does.
    """
    with dask_executors(options) as (open_executor, workers):
        return analyse_in_batches(tasks, open_executor, workers, progress)


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
            failure = WorkerFailure("worker_died", f"the worker process ended ({type(error).__name__})")
            results[batch[0]] = failed_result(tasks[batch[0]], failure)
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


@contextmanager
def dask_executors(options: ClusterOptions) -> Iterator[tuple[Callable[[], Executor], int]]:
    """Yields a function that opens an executor on the Dask cluster, and the number of workers of the cluster. A cluster
    that was started on this machine ends with the block.

    Raises:
        NotFound: the scheduler file does not exist.
        NoCluster: Dask is not installed, the scheduler cannot be reached, or a worker has another version of the code.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise NoCluster(NO_DASK) from error
    try:
        with _cluster(options) as where, Client(**where, set_as_default=False) as client:
            yield lambda: client.get_executor(pure=False), _checked_workers(client)
    except (OSError, TimeoutError, ValueError) as error:
        raise NoCluster(f"the Dask scheduler cannot be used: {error}") from error


@contextmanager
def _cluster(options: ClusterOptions) -> Iterator[dict[str, Any]]:
    """Yields the keyword arguments of a Dask client. If the options name a scheduler, they connect to its cluster.
    Otherwise, they connect to a new cluster on this machine, which ends with the block."""
    address = _written_address(options.scheduler_file) if options.scheduler_file else options.scheduler
    if address:
        _check(address)
        yield {"address": address, "timeout": 30}
        return
    from distributed import LocalCluster

    settings = {"n_workers": options.workers, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    # Batches of dead workers are run again one by one, so Dask need not retry them.
    with LocalCluster(**settings, scheduler_kwargs={"allowed_failures": 0}) as cluster:
        yield {"address": cluster}


def _written_address(path: str) -> str:
    """Returns the address of the scheduler in the scheduler file at `path`. Raises NotFound if the file does not exist,
    and ValueError if it contains no address."""
    status_of(path)  # Dask would wait for a file that does not exist
    with filesystem_of(path).open(path) as file:
        written = json.loads(file.read(MAX_SCHEDULER_FILE))
    address = written.get("address") if isinstance(written, dict) else None
    if not isinstance(address, str) or not address:
        raise ValueError(f"{path} names no address")
    return address


def _check(address: str) -> None:
    """Raises OSError or ValueError if `address`, the address of a Dask scheduler, cannot be resolved or needs a
    certificate that is not configured. Without this check, a Dask client would fail only after a minute."""
    from distributed.comm import resolve_address
    from distributed.security import Security

    resolve_address(address)
    if address.startswith("tls://") and Security().get_connection_args("client").get("ssl_context") is None:
        raise ValueError("TLS needs the certificate of the client: distributed.comm.tls in Dask's configuration")


def _checked_workers(client: Any) -> int:
    """Returns the number of workers of the cluster. Raises TimeoutError if there is none after 30 s, and NoCluster if a
    worker has another version of tb_bottleneck's code."""
    client.wait_for_workers(1, timeout=30)
    versions = client.run(code_version)
    others = sorted(address for address, version in versions.items() if version != code_version())
    if others:
        raise NoCluster(f"other code of tb_bottleneck runs on {len(others)} of {len(versions)} workers: {others[0]}")
    return len(versions)
