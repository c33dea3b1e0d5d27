"""Python between the steps is gone: moved into loader workers, onto the device, or out of the loop.

Changes: host time outside operators, loader and interruptions takes no time.
Assumes: nothing of it has to happen where it does.
Bounds: at worst half of it stays; at best none.
"""

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios.scenario import Scenario

STAYING = {Estimate.EXPECTED: 0.0, Estimate.LOW: 0.5, Estimate.HIGH: 0.0}


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Takes the time out; what overlaps, and so counts as less than nothing, stays."""
    gap = graph.items.gap.copy(order="K")
    gap[:, Activity.OTHER] = (gap[:, Activity.OTHER].clip(min=0) * STAYING[estimate]).astype("int64") + gap[
        :, Activity.OTHER
    ].clip(max=0)
    return graph.with_items(gap=gap)


SCENARIO = Scenario("host_python", apply, on_cpu=True)
