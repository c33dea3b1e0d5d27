"""Collectives take half as long: gradients in half precision, or a link twice as fast.

Changes: the length of every collective.
Assumes: the link bounds them, and not a peer that comes late: only recordings of all ranks tell those two apart.
Bounds: at worst they take SLOWER of their time, as where much of it is waiting; at best no computation waits for them.
"""

import numpy as np

from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.modified_graph import Case, World, scaled
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.device_ops import Work

HALVED, SLOWER = 0.5, 0.8


def cure(world: World, case: Case) -> World:
    """Shortens them, or frees everybody from waiting for them."""
    items = world.items
    collectives = world.works(Work.COLLECTIVE)
    left = SLOWER if case is Case.LOW else HALVED
    shorter = np.where(collectives, scaled(items.length, left), items.length)
    if case is not Case.HIGH:
        return world.but(length=shorter)
    return world.but(length=shorter, after=np.where((items.after >= 0) & collectives[items.after], NONE, items.after))


SCENARIO = Scenario("collectives", cure)
