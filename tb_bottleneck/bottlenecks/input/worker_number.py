"""The scenario of a given number of loader workers."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.units import share_text
from tb_bottleneck.bottlenecks.input.fixes import WORKERS, beside_workers
from tb_bottleneck.bottlenecks.input.loader import SINGLE_PROCESS_ITERATOR, loader_iterator
from tb_bottleneck.bottlenecks.input.loader_workers import (
    BESIDE_WORKERS,
    BESIDE_WORKERS_ON_CPU,
    SLOWER_WORKERS,
    cores_of,
    handover_ns,
    workers_are_behind,
    workers_window,
)
from tb_bottleneck.bottlenecks.input.trace_stages import batch_time
from tb_bottleneck.measures.trace.window_rows import fetches
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, on_host
from tb_bottleneck.replay.scenario import CannotPredict, ParameterScenario

MAX_WORKERS = 1e6  # a larger number of cores or workers is invalid
_NAMES = ("workers", "num_workers", "loader_workers")


def worker_number(recording: Recording, number: int) -> ParameterScenario:
    """Returns the scenario of `number` loader workers; 0 means that the training process makes the batches.

    Raises:
        CannotPredict: the recording does not show which processes make the batches or how fast, or `number` is too
            large, or 0 although there are no workers now.
    """
    iterator = loader_iterator(recording)
    rows = fetches(recording)
    if isinstance(iterator, Missing):
        raise CannotPredict(f"It is unknown which process makes the batches: {iterator.because}.")
    if number > MAX_WORKERS:
        raise CannotPredict(f"At most {MAX_WORKERS:.0f} workers are possible.")
    if number < 1 and iterator.text == SINGLE_PROCESS_ITERATOR:
        raise CannotPredict("The training process makes the batches already.")
    events = recording.trace.events
    rows_in_window = rows[recording.in_window(events.start[rows])]
    if not len(rows_in_window):
        raise CannotPredict("No batch was fetched in the recorded steps.")
    durations = events.duration[rows_in_window]
    if number < 1:
        return _without_workers(recording, len(rows_in_window))
    in_training_process = iterator.text == SINGLE_PROCESS_ITERATOR
    now = 0 if in_training_process else _workers_now(recording)
    usable, used = _at_once(recording, number), _at_once(recording, now)
    batches = len(rows_in_window)
    if in_training_process:
        per_batch = float(np.median(durations))
    elif workers_are_behind(recording):
        per_batch = max(recording.account.window, workers_window(recording)) / batches * used
    elif used < now:
        raise CannotPredict("There are more workers than cores, so the time of a batch includes waiting for a core.")
    else:
        per_batch = _batch_of_worker(recording, batches)

    def change(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
        fetches = np.minimum(graph.items.gap.of(Activity.LOAD_BATCH), handover_ns(recording.on_device, estimate))
        changed = graph.with_gap(Activity.LOAD_BATCH, fetches)
        return (beside_workers(changed, estimate) if number > now else changed).with_floor(
            per_batch * batches / usable * (SLOWER_WORKERS[estimate] if usable > used else 1.0)
        )

    beside = BESIDE_WORKERS if recording.on_device else BESIDE_WORKERS_ON_CPU
    expected, most = (share_text(beside[estimate] - 1) for estimate in (Estimate.EXPECTED, Estimate.LOW))
    assumptions = [
        f"next to new workers, the host of the training takes {expected} longer; {most} in the worst case",
        "workers make batches as fast as now, but 10 % slower because they share the machine; 30 % in the worst case",
        f"{now} worker{'s' if now > 1 else ''} make{'' if now > 1 else 's'} the batches now"
        if now
        else "the training process makes the batches now",
    ]
    if usable < number:
        assumptions.append(
            f"only {usable} of them work{'s' if usable == 1 else ''} at once, because the job has no more cores"
        )
    elif number > max(now, 1) and cores_of(recording) is None:
        assumptions.append(f"the job has cores for {number} of them; their number was not recorded")
    clause = f"the loader had {number} worker{'s' if number > 1 else ''}"
    return ParameterScenario("workers", change, clause=clause, assumptions=tuple(assumptions), fix=WORKERS)


def _without_workers(recording: Recording, batches: int) -> ParameterScenario:
    """Returns the scenario of a loader without workers: the training process makes the batches, and its host does
    nothing else in this time. `batches` is the number of batches in the window.

    Workers slow each other and the host of the training. Without workers, there is no such slowdown.

    Raises:
        CannotPredict: it is not known how long one process takes to make a batch.
    """
    per_batch = _batch_of_worker(recording, batches)
    beside = BESIDE_WORKERS if recording.on_device else BESIDE_WORKERS_ON_CPU

    def change(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
        loading = graph.items.gap.of(Activity.LOAD_BATCH)
        making = per_batch * batches / SLOWER_WORKERS[_OPPOSITE[estimate]]
        alone = on_host(graph, 1 / beside[_OPPOSITE[estimate]])
        if not loading.sum():  # it is not known where the batches are taken, so nothing runs beside their making
            return alone.with_floor(alone.window() + making)
        made = np.rint(loading * (making / loading.sum())).astype(np.int64)
        return alone.with_gap(Activity.LOAD_BATCH, made).with_pace(0.0)

    assumptions = (
        "making a batch takes 10 % less time in the training process, because no other workers share the machine; from "
        "as long as now to 30 % less",
        f"without workers, the host of the training takes {share_text(1 - 1 / beside[Estimate.EXPECTED])} less time",
    )
    clause = "the training process made the batches"
    return ParameterScenario("workers", change, clause=clause, assumptions=assumptions, fix=WORKERS)


def _batch_of_worker(recording: Recording, batches: int) -> float:
    """Returns the time in ns in which one worker makes a batch. `batches` is the number of batches in the window.

    Raises:
        CannotPredict: the monitor did not sample the workers, and the training did not always wait for them, so that
            their speed is not known.
    """
    sampled = batch_time(recording)
    if not isinstance(sampled, Missing):
        return sampled.value
    if workers_are_behind(recording):
        return recording.account.window / batches * _at_once(recording, _workers_now(recording))
    raise CannotPredict("The workers already keep up, so their speed is unknown; the monitor would sample it.")


_OPPOSITE = {Estimate.EXPECTED: Estimate.EXPECTED, Estimate.LOW: Estimate.HIGH, Estimate.HIGH: Estimate.LOW}
"""The opposite of each estimate. The low estimate for adding workers assumes that workers slow the training down. The
low estimate for removing them assumes that they do not."""


def _at_once(recording: Recording, workers: int) -> int:
    """Returns how many of `workers` can run at once: at most the number of the job's cores, if that was recorded."""
    cores = cores_of(recording)
    return workers if cores is None else min(workers, cores)


def _workers_now(recording: Recording) -> int:
    """Returns the recorded number of loader workers. Raises CannotPredict if it was not recorded."""
    context = recording.trace.header.context
    loader = context.get("loader")
    tables = [context, loader] if isinstance(loader, dict) else [context]
    for table in tables:
        for name in _NAMES:
            value = table.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and 0 < value < MAX_WORKERS:
                return value
    raise CannotPredict("The current number of workers was not recorded; the monitor records it.")
