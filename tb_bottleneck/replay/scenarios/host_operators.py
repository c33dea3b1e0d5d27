"""Moves operators that compute on the host onto the device, or out of the training thread.

Changes: the time of operators that compute on the host becomes zero.
Assumes: the device does the same work in little time, or another thread does it next to the training.
Bounds: low: half of it stays. High: none.
"""

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios.scenario import REMAINING_SHARE, Scenario


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Removes the time."""
    return graph.with_items(gap=graph.gap_scaled(Activity.COMPUTE, REMAINING_SHARE[estimate]))


SCENARIO = Scenario("host_operators", apply)
