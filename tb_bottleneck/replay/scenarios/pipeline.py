"""Makes batches in parallel with the training: instead of the user's own loop, or for a loader whose kind was not
recorded. Or creates them on the device, if they are constant or random values.

Changes: making batches on the training thread takes as long as taking a batch from a queue. Created on the device: the
part of this time that creates values is gone, and so are the copies to the device; low: the copies stay. High: all of
the time is gone.
Assumes: batches are made as fast as now; those of a loop by as many workers as keep up, at most the job's cores.
Bounds: never faster than these workers deliver; high: no fetch waits. Low, for a loop: the worker takes SLOWER_WORKERS
times as long. Low, for a loader of unknown kind: only unusually long fetches get shorter, to the median, because the
batches may already be made in parallel with the training.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.base.measure import Measure
from tb_bottleneck.measures.trace.host_dispatch import batch_operator_share, created_share
from tb_bottleneck.measures.trace.loader_workers import workers_for_loop
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios import copies, loader, storage
from tb_bottleneck.replay.scenarios.scenario import Scenario


def apply_loop(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Shortens the loop's batch making, and sets the lower bound of the window."""
    ready = loader.without_waiting(graph, estimate)
    if estimate is Estimate.HIGH:
        return ready
    workers = workers_for_loop(graph.base.recording)
    each = _loading_ns(graph) / (workers.value if isinstance(workers, Measure) else 1.0)
    return ready.with_floor(each * (loader.SLOWER_WORKERS[estimate] if estimate is Estimate.LOW else 1.0))


def apply_loader(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Does the same for a loader with fetches that may already wait for workers."""
    if estimate is Estimate.LOW:
        return storage.evened(graph, staying=0.0)
    ready = loader.without_waiting(graph, estimate)
    return ready if estimate is Estimate.HIGH else ready.with_floor(_loading_ns(graph))


def apply_on_device(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Removes the time of creating constant or random values, and the copies to the device."""
    remains = 0.0 if estimate is Estimate.HIGH else 1 - _created_part(graph.base.recording)
    created = graph.with_items(gap=graph.gap_scaled(Activity.LOAD_BATCH, remains)).with_pace(0.0)
    return created if estimate is Estimate.LOW else copies.apply(created, Estimate.HIGH)


def _created_part(recording: Recording) -> float:
    """Returns the part of the loading time that creates constant or random values."""
    made, created = batch_operator_share(recording), created_share(recording)
    return made.value * created.value if isinstance(made, Measure) and isinstance(created, Measure) else 0.0


def _loading_ns(graph: ModifiedGraph) -> int:
    """Returns the time in ns in which the training thread makes the window's batches or waits for them."""
    inside = graph.base.recording.in_window(graph.base.graph.items.at)
    return int(np.sum(graph.base.graph.items.gap.of(Activity.LOAD_BATCH)[inside]))


LOOP = Scenario("pipeline", apply_loop, on_cpu=True)
ON_DEVICE = Scenario("created_on_device", apply_on_device)
LOADER = Scenario("unknown_loader", apply_loader, on_cpu=True)
