"""Halves the time of collectives: gradients in half precision, or a link that is twice as fast.

Changes: the length of every collective.
Assumes: the link limits them, not a rank that is late. Only recordings of all ranks can distinguish the two.
Bounds: low: they take LOW_SHARE of their time, as if most of it was waiting. High: no computation waits for them.
"""

import numpy as np

from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.device_ops import Work

EXPECTED_SHARE, LOW_SHARE = 0.5, 0.8


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Shortens the collectives; in the high estimate, also removes the dependencies on them."""
    items = graph.items
    collectives = graph.with_work(Work.COLLECTIVE)
    left = LOW_SHARE if estimate is Estimate.LOW else EXPECTED_SHARE
    shorter = np.where(collectives, scale_column(items.length, left), items.length)
    if estimate is not Estimate.HIGH:
        return graph.with_items(length=shorter)
    return graph.with_items(
        length=shorter, after=np.where((items.after >= 0) & collectives[items.after], NONE, items.after)
    )


SCENARIO = Scenario("collectives", apply)
