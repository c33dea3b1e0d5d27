"""Makes batches in parallel with the training: instead of the user's own loop, or for a loader whose kind was not
recorded.

Changes: making batches on the training thread takes as long as taking a batch from a queue.
Assumes: batches are made as fast as now, one after the other.
Bounds: never faster than one worker delivers; high: no fetch waits. Low, for a loop: the worker takes SLOWER_WORKERS
times as long. Low, for a loader of unknown kind: only unusually long fetches get shorter, to the median, because the
batches may already be made in parallel with the training.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios import loader, storage
from tb_bottleneck.replay.scenarios.scenario import Scenario


def apply_loop(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Shortens the loop's batch making, and sets the lower bound of the window."""
    ready = loader.without_waiting(graph, estimate)
    if estimate is Estimate.HIGH:
        return ready
    return ready.with_floor(_loading_ns(graph) * (loader.SLOWER_WORKERS[estimate] if estimate is Estimate.LOW else 1.0))


def apply_loader(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Does the same for a loader with fetches that may already wait for workers."""
    return storage.evened(graph, staying=0.0) if estimate is Estimate.LOW else apply_loop(graph, estimate)


def _loading_ns(graph: ModifiedGraph) -> int:
    """Returns the time in ns in which the training thread makes the window's batches or waits for them."""
    inside = graph.base.recording.in_window(graph.base.graph.items.at)
    return int(np.sum(graph.base.graph.items.gap.of(Activity.LOAD_BATCH)[inside]))


LOOP = Scenario("pipeline", apply_loop, on_cpu=True)
LOADER = Scenario("unknown_loader", apply_loader, on_cpu=True)
