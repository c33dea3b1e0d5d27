"""Scenarios of batches: made by workers, cheaper, in parallel, on the device, or read from even storage."""

import math

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, union
from tb_bottleneck.base.measure import Measure
from tb_bottleneck.bottlenecks.host.facts import batch_operator_share, created_share
from tb_bottleneck.bottlenecks.input import batch_work
from tb_bottleneck.bottlenecks.input.loader import (
    LONGEST_HANDOVER_NS,
    SINGLE_PROCESS_ITERATOR,
    loader_iterator,
    uneven_fetches,
)
from tb_bottleneck.bottlenecks.input.loader_workers import (
    BESIDE_WORKERS,
    BESIDE_WORKERS_ON_CPU,
    SLOWER_WORKERS,
    batch_waits,
    cores_of,
    cores_per_worker,
    handover_ns,
    workers_are_behind,
    workers_factor,
    workers_for_loop,
    workers_needed,
    workers_window,
)
from tb_bottleneck.bottlenecks.transfer.fixes import with_pinned_copies
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, on_host
from tb_bottleneck.replay.scenario import REMAINING_SHARE, Scenario, with_quicker_operators

# The part of the time of making a batch that remains if batches are made cheaper. Expected: the mean of nine trainings
# on one core (0 to 13 %), whose data was prepared or whose code was vectorised (trainings). Low: a choice.
REMAINS_OF_BATCH = {Estimate.EXPECTED: 0.05, Estimate.LOW: 0.5, Estimate.HIGH: 0.0}
MIN_WAITS = 2


def with_workers(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Loads batches in (more) worker processes: training waits for a batch only if the workers are too slow.

    Returns None if the recording does not show whether worker processes make the batches.

    Changes: each fetch takes as long as taking a ready batch from a queue. Then all host time is multiplied by
    BESIDE_WORKERS, because new workers use the same cores and memory.
    Assumes: workers make batches as fast as in the recording, each on its own core.
    Bounds: the window takes at least as long as the workers need for its batches. If the training process makes the
    batches now, the workers need its time per batch, divided by the number of workers needed to keep up (at most the
    number of cores). If workers already make the batches, they need the recorded time between batches, divided by the
    factor by which the number of workers is raised. In both cases, the time is multiplied by SLOWER_WORKERS, because
    workers share memory, cores and storage. The window also takes at least as long as the cores need for the batches
    and the training (_floor_of_cores).
    """
    recording = graph.base.recording
    more = workers_factor(recording)
    factor = more.value if isinstance(more, Measure) else 1.0
    faster = _delivered_faster(graph, estimate, min(factor, cores_per_worker(recording) or factor))
    return faster if faster is None else faster.with_floor(_floor_of_cores(graph, estimate))


def _delivered_faster(graph: ModifiedGraph, estimate: Estimate, factor: float) -> ModifiedGraph | None:
    """Returns the graph in which workers make the batches.

    If workers already make the batches, the workers become `factor` times as fast. Otherwise, as many workers as needed
    take over from the training process. Returns None if the recording does not show whether workers make the batches.
    """
    floor = _floor(graph, factor)
    if floor is None:
        return None
    return beside_workers(without_waiting(graph, estimate), estimate).with_floor(floor * SLOWER_WORKERS[estimate])


def make_cheaper(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Makes each batch take less time to make.

    Changes: if workers make the batches, the workers become faster by the factor by which they are too slow for the
    training. If the training process makes the batches, making them takes REMAINS_OF_BATCH of its time, and on a CPU
    run, the operators get a little faster (with_quicker_operators), except in the low estimate.
    Returns None if the recording does not show whether workers make the batches.
    """
    iterator = loader_iterator(graph.base.recording)
    if not isinstance(iterator, Measure) or iterator.text != SINGLE_PROCESS_ITERATOR:
        more = workers_factor(graph.base.recording)
        return _delivered_faster(graph, estimate, more.value if isinstance(more, Measure) else 1.0)
    fixed = graph.with_items(gap=graph.gap_scaled(Activity.LOAD_BATCH, REMAINS_OF_BATCH[estimate]))
    return fixed if estimate is Estimate.LOW else with_quicker_operators(graph, fixed)


def beside_workers(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Returns the graph with the host time multiplied by BESIDE_WORKERS (for a CPU run, BESIDE_WORKERS_ON_CPU), because
    new workers use the same cores and memory, unless they wait."""
    recording = graph.base.recording
    factors, waits = BESIDE_WORKERS if recording.on_device else BESIDE_WORKERS_ON_CPU, batch_waits(recording)
    runs = 1 - (waits.value if isinstance(waits, Measure) else 0.0)
    return on_host(graph, 1 + (factors[estimate] - 1) * runs)


def without_waiting(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Returns the graph in which a batch is always ready: a fetch takes at most `handover_ns`, and the loader
    workers set no lower limit to the window."""
    fetches = np.minimum(graph.items.gap.of(Activity.LOAD_BATCH), handover_ns(graph.base.recording.on_device, estimate))
    return graph.with_gap(Activity.LOAD_BATCH, fetches).with_pace(0.0)


def at_workers_pace(graph: ModifiedGraph) -> ModifiedGraph:
    """Returns the graph with its current window, or the longer time of the workers, as the lower limit that the loader
    workers set, if they are too slow for the training. If the workers keep up, returns `graph`.

    With this limit, only a fix of the loader shortens the window: if another fix shortens a step, the step waits longer
    for its batch.
    """
    recording = graph.base.recording
    if not workers_are_behind(recording):
        return graph
    return graph.with_pace(max(graph.window(), workers_window(recording)))


def _floor(graph: ModifiedGraph, factor: float) -> float | None:
    """Returns the shortest time in ns in which workers can make the batches of the window.

    If workers already make the batches, the workers become `factor` times as fast. Returns None if the recording does
    not show whether workers make the batches.
    """
    recording = graph.base.recording
    iterator, workers = loader_iterator(recording), workers_needed(recording)
    fetches = graph.base.spans_named("enumerate(Data")
    if not isinstance(iterator, Measure) or not len(fetches):
        return None
    if iterator.text != SINGLE_PROCESS_ITERATOR:
        apart = _between_batches(fetches, recording.account.window / len(recording.steps))
        return apart * len(recording.steps) / factor
    batch = float(np.median(fetches.ends - fetches.starts))
    return batch * len(recording.steps) / (workers.value if isinstance(workers, Measure) else 1.0)


def _floor_of_cores(graph: ModifiedGraph, estimate: Estimate) -> float:
    """Returns the time in ns that the cores of the job need for the window, if other processes make the batches that
    the training thread makes now; 0 if the number of cores was not recorded, or if other processes make them already.

    Making the batches takes their recorded time without waits of a core, times SLOWER_WORKERS. The rest of the window
    takes the time of several threads, times BESIDE_WORKERS: on a CPU run, all of torch's threads in the low estimate
    and one in the high estimate; on a device, whose host may wait for it, one and none. The expected estimate takes the
    mean.
    """
    recording = graph.base.recording
    cores, iterator = cores_of(recording), loader_iterator(recording)
    if cores is None or not isinstance(iterator, Measure) or iterator.text != SINGLE_PROCESS_ITERATOR:
        return 0.0
    fetches = graph.base.spans_named("enumerate(Data")
    making = float((fetches.ends - fetches.starts).sum())
    rest = max(recording.account.window - making, 0.0)
    stated = recording.trace.header.context.get("torch_threads")
    known = float(stated) if isinstance(stated, int | float) and stated >= 1 else math.inf
    least, most = (0.0, 1.0) if recording.on_device else (1.0, min(known, float(cores)))
    threads = {Estimate.LOW: most, Estimate.EXPECTED: (least + most) / 2, Estimate.HIGH: least}[estimate]
    beside = (BESIDE_WORKERS if recording.on_device else BESIDE_WORKERS_ON_CPU)[estimate]
    waits = batch_waits(recording)
    making *= 1 - (waits.value if isinstance(waits, Measure) else 0.0)
    return (making * SLOWER_WORKERS[estimate] + rest * threads * beside) / cores


def _between_batches(fetches: Spans, step: float) -> float:
    """Returns the mean time in ns between two batches of the workers together.

    `fetches` are the spans in which the training thread fetched batches, `step` is the mean step time in ns, which is
    returned if fewer than MIN_WAITS fetches waited. A fetch that waited ends when its batch is complete, and no other
    batch is ready at that time. Therefore, between the ends of two such fetches, the workers made exactly the batches
    that were fetched between them.
    """
    waited = np.flatnonzero(fetches.ends - fetches.starts > LONGEST_HANDOVER_NS)
    if len(waited) < MIN_WAITS:
        return step
    first, last = int(waited[0]), int(waited[-1])
    return float(fetches.ends[last] - fetches.ends[first]) / (last - first)


WORKERS = Scenario("loader", with_workers, on_cpu=True)
MORE = Scenario("more_workers", with_workers, on_cpu=True)
CHEAPER = Scenario("cheaper_batches", make_cheaper, on_cpu=True)
"""`MORE`: workers already make the batches. `CHEAPER`: batches cost less, because no core is free for another worker.
If workers make these batches, the scenario is simulated as a larger number of workers."""


def with_even_fetches(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Makes storage respond evenly: no fetch of a batch takes longer than the median fetch.

    Returns None if all fetches take about the same time and worker processes cannot be simulated.

    Changes: each fetch that takes longer than the median takes the median time. If all fetches take about the same
    time, worker processes read the data instead (with_workers).
    Assumes: storage makes the long fetches slow, not samples of a different size.
    Bounds: in the low estimate, half of the time beyond the median stays. In the high estimate, every fetch finds a
    ready batch, as if enough batches were queued.
    """
    uneven = uneven_fetches(graph.base.recording)
    if not isinstance(uneven, Measure) or uneven.value <= 0:
        return with_workers(graph, estimate)
    return without_waiting(graph, estimate) if estimate is Estimate.HIGH else evened(graph, REMAINING_SHARE[estimate])


def evened(graph: ModifiedGraph, staying: float) -> ModifiedGraph:
    """Returns the graph in which the time of each fetch beyond the median fetch is multiplied by `staying` (0 to 1)."""
    loading = graph.items.gap.of(Activity.LOAD_BATCH)
    slow = np.minimum(graph.gap_share_in(_beyond_usual(graph)) * graph.base.gap_length, loading)
    return graph.with_items(
        gap=graph.gap_scaled(Activity.LOAD_BATCH, 1 - slow / np.maximum(loading, 1) * (1 - staying))
    ).with_pace(0.0)


def _beyond_usual(graph: ModifiedGraph) -> Spans:
    """Returns the spans of long fetches without their first part, which is as long as the median fetch."""
    fetches = graph.base.spans_named("enumerate(Data")
    usual = int(np.median(fetches.ends - fetches.starts)) if len(fetches) else 0
    return union(fetches.starts + usual, fetches.ends)


STORAGE = Scenario("storage", with_even_fetches, on_cpu=True)


def apply_loop(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Makes batches in parallel with the training, for a program whose own loop makes them without a loader.

    Changes: making a batch on the training thread takes as long as taking a ready batch from a queue.
    Assumes: batches are made as fast as recorded, by as many workers as needed, at most the number of cores.
    Bounds: the window takes at least as long as these workers need for its batches. In the low estimate, workers take
    SLOWER_WORKERS times as long. In the high estimate, a batch is always ready.
    """
    ready = without_waiting(graph, estimate)
    if estimate is Estimate.HIGH:
        return ready
    workers = workers_for_loop(graph.base.recording)
    each = _loading_ns(graph) / (workers.value if isinstance(workers, Measure) else 1.0)
    return ready.with_floor(each * (SLOWER_WORKERS[estimate] if estimate is Estimate.LOW else 1.0))


def apply_loader(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Makes batches in parallel with the training, for a loader whose kind was not recorded.

    Changes: making a batch on the training thread takes as long as taking a ready batch from a queue.
    Assumes: batches are made as fast as recorded.
    Bounds: the window takes at least the recorded time of making its batches. In the high estimate, a batch is always
    ready. In the low estimate, only fetches longer than the median get shorter, to the median, because the batches may
    already be made in parallel with the training.
    """
    if estimate is Estimate.LOW:
        return evened(graph, staying=0.0)
    ready = without_waiting(graph, estimate)
    return ready if estimate is Estimate.HIGH else ready.with_floor(_loading_ns(graph))


def apply_on_device(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Creates batches of constant or random values on the device.

    Changes: the part of the loading time that creates such values is removed, and so are the copies to the device.
    Assumes: the rest of making batches takes as long as recorded.
    Bounds: in the low estimate, the copies stay. In the high estimate, all of the loading time is removed.
    """
    remains = 0.0 if estimate is Estimate.HIGH else 1 - _created_part(graph.base.recording)
    created = graph.with_items(gap=graph.gap_scaled(Activity.LOAD_BATCH, remains)).with_pace(0.0)
    return created if estimate is Estimate.LOW else with_pinned_copies(created, Estimate.HIGH)


def _created_part(recording: Recording) -> float:
    """Returns the share (0 to 1) of the loading time in which constant or random values are created; 0 if unknown."""
    made, created = batch_operator_share(recording), created_share(recording)
    return made.value * created.value if isinstance(made, Measure) and isinstance(created, Measure) else 0.0


def _loading_ns(graph: ModifiedGraph) -> int:
    """Returns the recorded time in ns in which the training thread makes or awaits the batches of the window."""
    inside = graph.base.recording.in_window(graph.base.graph.items.at)
    return int(np.sum(graph.base.graph.items.gap.of(Activity.LOAD_BATCH)[inside]))


LOOP = Scenario("pipeline", apply_loop, on_cpu=True)
ON_DEVICE = Scenario("created_on_device", apply_on_device)
LOADER = Scenario("unknown_loader", apply_loader, on_cpu=True)

FIXES = {
    "loader_in_main_process": WORKERS,
    "too_few_workers": MORE,
    "cores_limit_workers": CHEAPER,
    "too_few_cores": CHEAPER,
    "slow_storage": STORAGE,
    "slow_loader": LOADER,
    "batches_in_the_loop": LOOP,
    "created_on_host": ON_DEVICE,
    **batch_work.FIXES,
}
"""The scenario that simulates the fix of each cause."""
