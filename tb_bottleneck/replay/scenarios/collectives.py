"""Collectives take half as long: gradients in half precision, or a link twice as fast.

Changes: the length of every collective.
Assumes: the link bounds them, and not a peer that comes late: only recordings of all ranks tell those two apart.
Bounds: at worst they take SLOWER of their time, as where much of it is waiting; at best no computation waits for them.
"""

import numpy as np

from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.device_ops import Work

HALVED, SLOWER = 0.5, 0.8


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Shortens them, or frees everybody from waiting for them."""
    items = graph.items
    collectives = graph.with_work(Work.COLLECTIVE)
    left = SLOWER if estimate is Estimate.LOW else HALVED
    shorter = np.where(collectives, scale_column(items.length, left), items.length)
    if estimate is not Estimate.HIGH:
        return graph.with_items(length=shorter)
    return graph.with_items(
        length=shorter, after=np.where((items.after >= 0) & collectives[items.after], NONE, items.after)
    )


SCENARIO = Scenario("collectives", apply)
