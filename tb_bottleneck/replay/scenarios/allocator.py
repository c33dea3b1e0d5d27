"""Stops requesting memory from the driver: the caching allocator serves every request itself.

Changes: calls that allocate or free take no time, and no longer wait for the device.
Assumes: there is enough memory to keep what was freed.
Bounds: low: half of the time stays, as if sizes changed every step. High: none stays.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import REMAINING_SHARE, Scenario
from tb_bottleneck.trace.runtime_calls import Role


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Removes the calls."""
    items, calls = graph.items, graph.base.recording.trace.calls
    role = calls.role[items.call] if len(calls) else items.call
    frees = (items.call >= 0) & (role == Role.ALLOCATE)
    staying = REMAINING_SHARE[estimate]
    return graph.with_items(
        gap=graph.gap_scaled(Activity.ALLOCATE, staying),
        cost=np.where(frees, scale_column(items.cost, staying), items.cost),
        lag=np.where(frees, scale_column(items.lag, staying), items.lag),
        drains=items.drains & ~(frees & (staying == 0.0)),
    )


SCENARIO = Scenario("allocator", apply)
