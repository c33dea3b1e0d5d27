"""What runs for the first time has run before: nothing is compiled, loaded or tuned inside the steps.

Changes: host time in compiling, in loading of modules and in tuning takes no time.
Assumes: it does not come back, as it does where shapes change from step to step.
Bounds: at worst half of it comes back; at best none does, which is what is expected.
"""

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios.scenario import Scenario

STAYING = {Estimate.EXPECTED: 0.0, Estimate.LOW: 0.5, Estimate.HIGH: 0.0}


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Takes the time out."""
    return graph.with_items(gap=graph.gap_scaled(Activity.INITIALIZE, STAYING[estimate]))


SCENARIO = Scenario("first_runs", apply)
