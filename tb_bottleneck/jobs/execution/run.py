"""Chooses where many recordings are analysed: in this process, in local processes, or on a Dask cluster."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.jobs.execution.rank_analysis import RankResult, Task, analyse
from tb_bottleneck.sources.paths import status_of

# Smallest total size in bytes of recordings for which processes are started. Starting processes takes half a second, in
# which about this much compressed trace is analysed.
MIN_BYTES = 4 << 20
Begin = Callable[[str], Callable[[int, int], None]]


def analyse_all(
    tasks: Sequence[Task],
    bar: AbstractContextManager[Begin],
    processes: int = 0,
    scheduler: str = "",
    scheduler_file: str = "",
    workers: int = 0,
) -> list[RankResult]:
    """Analyses the recordings of `tasks`, and returns the results in the same order. The results do not depend on where
    the tasks run.

    Args:
        tasks: the recordings to analyse.
        bar: a context manager of a progress bar; it yields a function that takes a label and returns a function, which
            takes the finished and the total amount of work.
        processes: the number of local processes; 0 means as many as are useful.
        scheduler: the address of a Dask scheduler.
        scheduler_file: the path of the file in which a Dask scheduler has written its address.
        workers: the number of workers of a Dask cluster to start on this machine.

    At most one of the last four options may be given. An empty text or 0 means that an option is not given. Raises
    NotFound and NoCluster as dask_executors does.
    """
    with bar as begin:
        environment = {} if processes else os.environ
        if _is_alone(tasks, scheduler or scheduler_file or workers, processes):
            return [analyse(task, begin(os.path.basename(task.path))) for task in tasks]
        from tb_bottleneck.jobs.execution.batches import analyse_in_batches
        from tb_bottleneck.jobs.execution.executors import ClusterOptions, dask_executors, process_pool, usable_cores

        progress = begin(f"{len(tasks)} recordings")
        options = ClusterOptions.of(scheduler, scheduler_file, workers, environment)
        if options.on_dask:
            with dask_executors(options) as (open_executor, count):
                return analyse_in_batches(tasks, open_executor, count, progress)
        count = min(processes or usable_cores(), len(tasks))
        return analyse_in_batches(tasks, partial(process_pool, count), count, progress)


def _is_alone(tasks: Sequence[Task], cluster: str | int, processes: int) -> bool:
    """Returns True if the tasks run in this process, because one process is requested, or because more processes would
    save no time.

    `cluster` is any option that names a Dask cluster, or an empty text or 0.
    """
    if processes:
        return processes == 1
    if cluster or os.environ.get("DASK_SCHEDULER_ADDRESS"):
        return False
    return len(tasks) < 2 or not _several_cores() or _bytes(tasks) < MIN_BYTES


def _several_cores() -> bool:
    return (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1) > 1


def _bytes(tasks: Sequence[Task]) -> int:
    """Returns the total size of the recordings in bytes. Files that are not found count as empty."""
    total = 0
    for task in tasks:
        with suppress(NotFound):
            total += status_of(task.path).size
    return total
