"""Chooses where many recordings are analysed: in this process, in local processes, or on a Dask cluster."""

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace

from tb_bottleneck.base.errors import NotFound, Unusable
from tb_bottleneck.base.machine import usable_cores
from tb_bottleneck.jobs.execution.rank_analysis import RankResult, Task, analyse
from tb_bottleneck.sources.paths import status_of

# Smallest total size in bytes of recordings for which processes are started. Starting processes takes half a second, in
# which about this much compressed trace is analysed.
MIN_BYTES = 4 << 20
SCHEDULER_VARIABLE = "DASK_SCHEDULER_ADDRESS"
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
    NotFound and NoCluster as analyse_on_dask does.
    """
    with bar as begin:
        environment = {} if processes else os.environ
        if _is_alone(tasks, scheduler or scheduler_file or workers, processes):
            return [analyse(task, begin(os.path.basename(task.path))) for task in tasks]
        progress = begin(f"{len(tasks)} recordings")
        if scheduler or scheduler_file or workers or environment.get(SCHEDULER_VARIABLE):
            from tb_bottleneck.jobs.execution.dask import ClusterOptions, analyse_on_dask

            return analyse_on_dask(tasks, ClusterOptions.of(scheduler, scheduler_file, workers, environment), progress)
        from tb_bottleneck.jobs.execution.local import analyse_in_processes
        from tb_bottleneck.workers.ipc import WorkerLimits

        try:
            limits = WorkerLimits.from_environment(os.environ)
        except ValueError as error:
            raise Unusable(str(error)) from None
        count = min(processes or usable_cores(), len(tasks))
        return analyse_in_processes(tasks, replace(limits, processes=count), progress)


def _is_alone(tasks: Sequence[Task], cluster: str | int, processes: int) -> bool:
    """Returns True if the tasks run in this process, because one process is requested, or because more processes would
    save no time.

    `cluster` is the first given option for a Dask cluster (scheduler, scheduler file or number of workers); empty or 0
    if none is given. `processes` = 1 takes precedence over it.
    """
    if processes:
        return processes == 1
    if cluster or os.environ.get(SCHEDULER_VARIABLE):
        return False
    return len(tasks) < 2 or usable_cores() < 2 or _bytes(tasks) < MIN_BYTES


def _bytes(tasks: Sequence[Task]) -> int:
    """Returns the total size of the recordings in bytes. Files that are not found count as empty."""
    total = 0
    for task in tasks:
        with suppress(NotFound):
            total += status_of(task.path).size
    return total
