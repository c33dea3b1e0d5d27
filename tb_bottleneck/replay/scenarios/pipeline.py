"""Batches are made beside the training: by a loop of one's own, or a loader whose kind was not recorded.

Changes: what makes batches on the training thread takes as long as taking a batch from a queue.
Assumes: batches are made as fast as now, one after the other.
Bounds: never faster than one maker delivers; at best nobody waits for a batch. At worst, for a loop, that maker takes
SLOWER_WORKERS times as long; for a loader of unknown kind only fetches of unusual length get shorter, to the median
one, since nothing tells that batches are not made beside the training already.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios import loader, storage
from tb_bottleneck.replay.scenarios.scenario import Scenario


def apply_loop(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Shortens what the loop does to make batches, and sets the floor."""
    ready = loader.without_waiting(graph, estimate)
    if estimate is Estimate.HIGH:
        return ready
    return ready.with_floor(_making(graph) * (loader.SLOWER_WORKERS if estimate is Estimate.LOW else 1.0))


def apply_loader(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """The same, where a loader's fetches may wait for makers that are there already."""
    return storage.evened(graph, staying=0.0) if estimate is Estimate.LOW else apply_loop(graph, estimate)


def _making(graph: ModifiedGraph) -> int:
    """Time in which the training thread makes the window's batches, or waits for them, in ns."""
    inside = graph.base.recording.in_window(graph.base.graph.items.at)
    return int(np.sum(graph.base.graph.items.gap[inside, Activity.LOAD_BATCH]))


LOOP = Scenario("pipeline", apply_loop, on_cpu=True)
LOADER = Scenario("unknown_loader", apply_loader, on_cpu=True)
