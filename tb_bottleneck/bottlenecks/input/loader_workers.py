"""Measures of the loader's worker processes: their number, how many are needed, and whether they keep up."""

import math
import re

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing, known_value, text_measure
from tb_bottleneck.bottlenecks.input.batch_work import handover_spans
from tb_bottleneck.bottlenecks.input.loader import (
    LONGEST_HANDOVER_NS,
    NO_LOADER,
    WORKER_ITERATOR,
    loader_fetch,
    loader_idle,
    loader_iterator,
    loader_waits,
)
from tb_bottleneck.bottlenecks.input.trace_stages import (
    batch_time,
    batches_in_window,
    loader_work,
    processes_needed,
    workers_at_work,
)
from tb_bottleneck.measures.trace.window_rows import fetches, host_rows
from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.trace.kinds import Kind

# A loader has one queue of indices per worker, and each queue has one thread that sends the indices
# (torch/utils/data/dataloader.py; CPython multiprocessing/queues.py, Queue._feed). The thread runs for as long as the
# worker.
_INDEX_SENDER = re.compile(r"multiprocessing/queues\.py\(\d+\): _feed")
# No loader has more workers. The context of a trace is untrusted, so larger numbers are ignored.
MAX_WORKERS = 1_000_000
# Workers share memory, cores and storage, so several are slower than one: expected a tenth, 30 % in the worst case.
SLOWER_WORKERS = {Estimate.EXPECTED: 1.1, Estimate.LOW: 1.3, Estimate.HIGH: 1.0}
# New workers share cores and memory with the host of the training, which takes longer by these factors. Expected: the
# middle of the bounds, where nothing else is known of the values between them (JCGM 100:2008, 4.3.7). Low: of two
# public recordings of ResNet-50 with 0 and 4 workers, the step of the second took 12 % longer than without this factor.
BESIDE_WORKERS = {Estimate.EXPECTED: 1.075, Estimate.LOW: 1.15, Estimate.HIGH: 1.0}
# On a CPU run, workers share cores and caches with the model. Low: in the demo's pair of runs with 0 and 2 workers on
# two cores, the model itself takes 1.35 times as long with workers.
BESIDE_WORKERS_ON_CPU = {Estimate.EXPECTED: 1.175, Estimate.LOW: 1.35, Estimate.HIGH: 1.0}
# Taking a ready batch from the queue and handing over its memory: 0.06 to 0.2 ms.
BATCH_HANDOVER_NS = {Estimate.EXPECTED: 100_000, Estimate.LOW: LONGEST_HANDOVER_NS, Estimate.HIGH: 60_000}
# On a CPU run, the training and the worker that hands over share cores: 0.8 to 3.2 ms for two tensors on two virtual
# cores (six trainings).
BATCH_HANDOVER_ON_CPU_NS = {Estimate.EXPECTED: 1_500_000, Estimate.LOW: 3_000_000, Estimate.HIGH: 200_000}
# Number of workers per core that is advised if making a batch waits without a core for at least the share MOSTLY_WAITS.
# Both are choices; the number assumes that each worker computes for a quarter of the time.
WAITING_WORKERS_PER_CORE, MOSTLY_WAITS = 4, 0.5


def handover_ns(on_device: bool, estimate: Estimate) -> int:
    """Returns the time in ns to take a batch from a worker."""
    return (BATCH_HANDOVER_NS if on_device else BATCH_HANDOVER_ON_CPU_NS)[estimate]


def workers_needed(recording: Recording) -> Measure | Missing:
    """For a loader without workers: number of workers that would make batches as fast as the training uses them if it
    never waits for a batch (count).

    Time in the loader per step / time of the step without the wait for batches, rounded up; at most the cores of the
    job, or WAITING_WORKERS_PER_CORE times as many if making a batch mostly waits.
    """
    fetch, idle = loader_fetch(recording), loader_idle(recording)
    if isinstance(fetch, Missing) or isinstance(idle, Missing):
        return NO_LOADER
    needed = math.ceil(fetch.value / max(_step_without(recording, idle.value), 1.0))
    return Measure(float(max(min(needed, most_workers(recording) or needed), 1)), "count", "process", fetch.count)


@memoized
def batch_waits(recording: Recording) -> Measure | Missing:
    """Share of the time of making a batch in which the process that makes it needs no core."""
    if not made_by_workers(recording):
        return loader_waits(recording)
    work = loader_work(recording)
    if isinstance(work, Missing) or work.core_ns is None or not work.ns:
        return work if isinstance(work, Missing) else Missing("the cores that the workers need were not recorded")
    return Measure(max(1 - work.core_ns / work.ns, 0.0), "share", "worker time", int(work.batches))


def most_workers(recording: Recording) -> int | None:
    """Returns the largest number of workers that is advised: the cores of the job, or WAITING_WORKERS_PER_CORE times as
    many if making a batch mostly waits; None if the number of cores is not known."""
    cores, waits = cores_of(recording), batch_waits(recording)
    mostly = isinstance(waits, Measure) and waits.value >= MOSTLY_WAITS
    return cores if cores is None or not mostly else WAITING_WORKERS_PER_CORE * cores


def workers_for_loop(recording: Recording) -> Measure | Missing:
    """For batches that the training loop creates itself: number of workers that would make batches as fast as the loop
    uses them (count).

    Time for which the device waits for batches / time of the step without this wait, rounded up; at most the cores of
    the job.
    """
    idle = loader_idle(recording)
    if isinstance(idle, Missing):
        return NO_LOADER
    needed = math.ceil(idle.value / max(_step_without(recording, idle.value), 1.0))
    return Measure(float(max(min(needed, cores_of(recording) or needed), 1)), "count", "process", idle.count)


def workers_factor(recording: Recording) -> Measure | Missing:
    """The factor by which the number of workers must grow to keep up (count).

    Time of the step / time of the step without the wait for batches. Rounded up, limited to
    `most_workers`, but never below 2.
    """
    idle = loader_idle(recording)
    if isinstance(idle, Missing):
        return NO_LOADER
    step = recording.account.window / len(recording.steps)
    factor = math.ceil(step / max(_step_without(recording, idle.value), 1.0))
    return Measure(float(max(min(factor, most_workers(recording) or factor), 2)), "count", "", idle.count)


def workers_advised(recording: Recording) -> Measure | Missing:
    """The value of num_workers to try next, as text; at most `most_workers`.

    The value is `processes_needed` if the time of making a batch is known, otherwise `workers_factor` times the present
    number. If the present number was not recorded, the text is a formula, such as `min(2 * previous, 16)`.
    """
    factor, now = workers_factor(recording), workers_used(recording)
    if isinstance(factor, Missing):
        return factor
    most, needed = most_workers(recording), processes_needed(recording)
    if isinstance(needed, Measure):
        return text_measure(str(min(int(needed.value), most or MAX_WORKERS)))
    if isinstance(now, Measure):
        wanted = int(factor.value * now.value)
        return text_measure(str(wanted if most is None else min(wanted, most)))
    return text_measure(
        f"{factor.value:.0f} * previous" if most is None else f"min({factor.value:.0f} * previous, {most})"
    )


@memoized
def workers_used(recording: Recording) -> Measure | Missing:
    """The loader's num_workers from the run's context; otherwise the number of threads that send indices to workers
    (count)."""
    now = recording.trace.header.context.get("workers")
    if isinstance(now, int) and not isinstance(now, bool) and 0 < now < MAX_WORKERS:
        return Measure(float(now), "count", "process", source="context")
    sending = host_rows(recording, lambda name: bool(_INDEX_SENDER.fullmatch(name)), Kind.PYTHON)
    if len(sending):
        return Measure(float(len(sending)), "count", "process", len(sending))
    return Missing("the loader's num_workers was not recorded")


def cores_available(recording: Recording) -> Measure | Missing:
    """Number of cores available to the job (count)."""
    cores = cores_of(recording)
    if cores is None:
        return Missing("the run's context was not recorded; tb_bottleneck.monitor.facts.process adds it to the trace")
    return Measure(float(cores), "count", "process", source="context")


def cores_per_worker(recording: Recording) -> float | None:
    """Returns `most_workers` / present number of workers, at least 1; None if one of the two numbers is not known."""
    most, now = most_workers(recording), workers_used(recording)
    return None if most is None or isinstance(now, Missing) else max(most / now.value, 1.0)


def _step_without(recording: Recording, idle: float) -> float:
    """Returns the mean step time without `idle`. Both are in ns."""
    return recording.account.window / len(recording.steps) - idle


def cores_of(recording: Recording) -> int | None:
    """Returns the number of cores that the job may use; None if it was not recorded."""
    cores = recording.trace.header.context.get("cores")
    return int(cores) if isinstance(cores, int | float) and 1 <= cores < 1e6 else None


# The workers determine the pace of the training if at least SLOW_FETCHES_FROM of the fetches wait, and if fetches take
# at least WAITING_FROM of the time. In the public ResNet-50 recordings with 4 workers, fetches take 0.6 and 0.9 % of
# the time: handing over 19 MB.
SLOW_FETCHES_FROM, WAITING_FROM = 0.5, 0.03
# Workers that make batches for at least this share of their time do not keep up: the queue of a worker that keeps up is
# full, and the worker waits. This share is a choice.
WORKERS_BEHIND = 0.9
# The recorded steps took batches from the queue if the workers need this many times as long to make them: the profiler
# stops the loop when it starts, and the queue becomes full. On an H100, with 16 batches ready, 5 recorded steps took 41
# ms, and all others 89 ms. The factor is a choice.
READY_FROM = 1.25


@memoized
def workers_window(recording: Recording) -> float:
    """Returns the time (ns) in which the workers make the batches of the window, from samples of their stacks; 0 if it
    is not known, or if they wait for the training."""
    batch, used = batch_time(recording), workers_used(recording)
    at_work = known_value(workers_at_work(recording)) or 0.0
    if isinstance(batch, Missing) or isinstance(used, Missing) or at_work < WORKERS_BEHIND:
        return 0.0
    return batch.value * batches_in_window(recording) / min(used.value, cores_of(recording) or used.value)


def took_ready_batches(recording: Recording) -> bool:
    """Returns True if the recorded steps took batches from the queue faster than the workers make them."""
    return workers_window(recording) >= READY_FROM * recording.account.window


def workers_behind(recording: Recording) -> Measure | Missing:
    """1 if most fetches wait for workers (see `workers_are_behind`), otherwise 0 (count); missing without fetches."""
    count = len(fetches(recording))
    return Measure(float(workers_are_behind(recording)), "count", "", count) if count else NO_LOADER


def made_by_workers(recording: Recording) -> bool:
    """Returns True if worker processes are known to make the batches."""
    iterator = loader_iterator(recording)
    return isinstance(iterator, Measure) and iterator.text == WORKER_ITERATOR


def workers_are_behind(recording: Recording) -> bool:
    """Returns True if most fetches of the window wait until workers have made the batch, and not only for the handover
    of the batch.

    At least SLOW_FETCHES_FROM of the fetches must wait for longer than a handover takes (LONGEST_HANDOVER_NS, or longer
    if Python frames show it), and all these waits together for at least WAITING_FROM of the window. The workers then
    determine the pace of the training: a shorter step waits longer for its batch. This is also the case if the recorded
    steps took batches that were ready.
    """
    if not made_by_workers(recording):
        return False
    if took_ready_batches(recording):
        return True
    events, rows = recording.trace.events, fetches(recording)
    rows = rows[recording.in_window(events.start[rows])]
    taken = handover_spans(recording).covered(events.start[rows], events.end[rows])
    waits = events.duration[rows] - taken
    slow = waits > np.maximum(taken, LONGEST_HANDOVER_NS)
    mostly_slow = bool(len(rows)) and float(np.mean(slow)) >= SLOW_FETCHES_FROM
    return mostly_slow and float(waits.sum()) >= WAITING_FROM * recording.account.window
