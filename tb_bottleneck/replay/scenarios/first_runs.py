"""Removes first-time work from the steps: nothing is compiled, loaded or tuned inside them.

Changes: host time in compilation, module loading and autotuning becomes zero.
Assumes: it does not recur, as it does if shapes change from step to step.
Bounds: low: half of it recurs. High: none does, as expected.
"""

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios.scenario import REMAINING_SHARE, Scenario


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Shortens the host time of first runs."""
    return graph.with_items(gap=graph.gap_scaled(Activity.INITIALIZE, REMAINING_SHARE[estimate]))


SCENARIO = Scenario("first_runs", apply)
