"""Removes Python code between the steps: it moves into loader workers, onto the device, or out of the loop.

Changes: host time outside operators, loader and interruptions becomes zero.
Assumes: none of that code has to run in its place.
Bounds: low: half of it stays. High: none.
"""

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios.scenario import REMAINING_SHARE, Scenario


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Shortens the host time in Python code. Negative values, which come from overlaps, stay."""
    python = graph.items.gap.of(Activity.OTHER)
    remaining = (python.clip(min=0) * REMAINING_SHARE[estimate]).astype("int64")
    return graph.with_gap(Activity.OTHER, remaining + python.clip(max=0))


SCENARIO = Scenario("host_python", apply, on_cpu=True)
