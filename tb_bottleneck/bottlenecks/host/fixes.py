"""Scenarios of the host: less Python code, and fewer operators that compute on the host."""

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenario import REMAINING_SHARE, Scenario, with_quicker_operators


def without_python(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Removes Python code from the training thread: it moves into loader workers, onto the device, or out of the loop.

    Changes: host time in no other recorded activity (Activity.OTHER) becomes zero. Negative times, which come from
    overlaps of threads, stay. On a CPU, the operators get a little faster (with_quicker_operators).
    Assumes: none of this code has to run on the training thread.
    Bounds: in the low estimate, half of the time stays, and operators take as long as recorded. The high estimate
    equals the expected one.
    """
    python = graph.items.gap.of(Activity.OTHER)
    remaining = (python.clip(min=0) * REMAINING_SHARE[estimate]).astype("int64")
    fixed = graph.with_gap(Activity.OTHER, remaining + python.clip(max=0))
    return fixed if estimate is Estimate.LOW else with_quicker_operators(graph, fixed)


WITHOUT_PYTHON = Scenario("host_python", without_python, on_cpu=True)


def without_host_operators(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Moves operators that compute on the host onto the device, or out of the training thread.

    Changes: the time of operators that compute on the host becomes zero.
    Assumes: the device does the same work in little time, or another thread does it next to the training.
    Bounds: in the low estimate, half of the time stays. The high estimate equals the expected one.
    """
    return graph.with_items(gap=graph.gap_scaled(Activity.COMPUTE, REMAINING_SHARE[estimate]))


WITHOUT_HOST_OPERATORS = Scenario("host_operators", without_host_operators)

FIXES = {"host_operators": WITHOUT_HOST_OPERATORS, "host_python": WITHOUT_PYTHON}
"""The scenario that simulates the fix of each cause."""
