"""Batches are made beside the training: by a loop of one's own, or a loader whose kind was not recorded.

Changes: what makes batches on the training thread takes as long as taking a batch from a queue.
Assumes: batches are made as fast as now, one after the other.
Bounds: never faster than one maker delivers; at best nobody waits for a batch. At worst, for a loop, that maker takes
SLOWER_WORKERS times as long; for a loader of unknown kind only fetches of unusual length get shorter, to the median
one, since nothing tells that batches are not made beside the training already.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Case, World
from tb_bottleneck.replay.scenarios import loader, storage
from tb_bottleneck.replay.scenarios.scenario import Scenario


def cure_loop(world: World, case: Case) -> World:
    """Shortens what the loop does to make batches, and sets the floor."""
    ready = loader.without_waiting(world, case)
    if case is Case.HIGH:
        return ready
    return ready.at_least(_making(world) * (loader.SLOWER_WORKERS if case is Case.LOW else 1.0))


def cure_loader(world: World, case: Case) -> World:
    """The same, where a loader's fetches may wait for makers that are there already."""
    return storage.evened(world, staying=0.0) if case is Case.LOW else cure_loop(world, case)


def _making(world: World) -> int:
    """Time in which the training thread makes the window's batches, or waits for them, in ns."""
    inside = world.facts.recording.in_window(world.facts.graph.items.at)
    return int(np.sum(world.facts.graph.items.gap[inside, Activity.LOAD_BATCH]))


LOOP = Scenario("pipeline", cure_loop, on_cpu=True)
LOADER = Scenario("unknown_loader", cure_loader, on_cpu=True)
