"""Scenarios of the host: less Python code, and fewer operators that compute on the host."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.bottlenecks.host.facts import TRACED_LEFT
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenario import REMAINING_SHARE, Scenario, waiting, with_quicker_operators
from tb_bottleneck.trace.table import Bools

PYTHON_LEFT = {Estimate.EXPECTED: TRACED_LEFT, Estimate.LOW: 0.37, Estimate.HIGH: 0.12}
"""The range of the measurements of TRACED_LEFT."""
CALLS_LEFT = {Estimate.EXPECTED: 0.84, Estimate.LOW: 1.0, Estimate.HIGH: 0.81}
"""The same of a step of small layers, which took 1.16 to 1.23 times as long. The low estimate is a choice."""
PROCESSES_NS = 100_000
"""Python that follows a wait for the device and takes at least this time works on the result of the wait. A choice: a
print or a float() takes less."""


def _waits_for_results(graph: ModifiedGraph) -> tuple[Bools, Bools]:
    """Returns two masks of the items: those that wait for results of the device that Python then works on, and those of
    them that follow another one. Nothing is launched between two that follow each other, so that the host's time
    between them is also work on results."""
    items, waits = graph.items, waiting(graph)
    python = items.gap.of(Activity.OTHER) >= PROCESSES_NS
    found = np.zeros(len(items), np.bool_)
    earlier = items.follows[python & (items.follows >= 0)]
    while len(earlier := earlier[(earlier >= 0) & waits[earlier] & ~found[earlier]]):
        found[earlier] = True
        earlier = items.follows[earlier]
    return found, found & (items.follows >= 0) & found[items.follows]


def without_python(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Removes Python code from the training thread: it moves into loader workers, onto the device, or out of the loop.

    Changes: host time in no other recorded activity (Activity.OTHER) becomes zero. Negative times, which come from
    overlaps of threads, stay. The host no longer waits for results that this code works on, and its time between such
    waits becomes zero. On a CPU, the operators get a little faster (with_quicker_operators).
    Assumes: none of this code has to run on the training thread.
    Bounds: in the low estimate, half of the time stays, with the waits, and operators take as long as recorded. The
    high estimate equals the expected one.
    """
    python = graph.items.gap.of(Activity.OTHER)
    remaining = (python.clip(min=0) * REMAINING_SHARE[estimate]).astype("int64")
    fixed = graph.with_gap(Activity.OTHER, remaining + python.clip(max=0))
    if estimate is Estimate.LOW:
        return fixed
    (gone, between), items = _waits_for_results(graph), graph.items
    fixed = fixed.with_items(
        gap=fixed.gap_scaled(Activity.DISPATCH, np.where(between, 0.0, 1.0)),
        waits=np.where(gone, NONE, items.waits),
        drains=items.drains & ~gone,
    )
    return with_quicker_operators(graph, fixed)


WITHOUT_PYTHON = Scenario("host_python", without_python, on_cpu=True)


def without_tracer(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Removes what a tracer adds to Python outside torch, and to the Python of torch that calls operators.

    Changes: of host time in no other recorded activity (Activity.OTHER), PYTHON_LEFT remains, and of dispatching
    CALLS_LEFT. Negative times, which come from overlaps of threads, stay.
    """
    python = graph.items.gap.of(Activity.OTHER)
    remaining = (python.clip(min=0) * PYTHON_LEFT[estimate]).astype("int64")
    fixed = graph.with_gap(Activity.OTHER, remaining + python.clip(max=0))
    return fixed.with_items(gap=fixed.gap_scaled(Activity.DISPATCH, CALLS_LEFT[estimate]))


WITHOUT_TRACER = Scenario("python_tracer", without_tracer, on_cpu=True)


def without_host_operators(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Moves operators that compute on the host onto the device, or out of the training thread.

    Changes: the time of operators that compute on the host becomes zero.
    Assumes: the device does the same work in little time, or another thread does it next to the training.
    Bounds: in the low estimate, half of the time stays. The high estimate equals the expected one.
    """
    return graph.with_items(gap=graph.gap_scaled(Activity.COMPUTE, REMAINING_SHARE[estimate]))


WITHOUT_HOST_OPERATORS = Scenario("host_operators", without_host_operators)

FIXES = {"host_operators": WITHOUT_HOST_OPERATORS, "host_python": WITHOUT_PYTHON, "python_tracer": WITHOUT_TRACER}
"""The scenario that simulates the fix of each cause."""
