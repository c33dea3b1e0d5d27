"""The driver is no longer asked for memory: the caching allocator serves every request itself.

Changes: calls that allocate or free take no time, and nobody waits for the device in them.
Assumes: memory suffices to keep what was freed.
Bounds: at worst half of the calls stay, as where sizes change every step; at best none does.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.runtime_calls import Role

STAYING = {Estimate.EXPECTED: 0.0, Estimate.LOW: 0.5, Estimate.HIGH: 0.0}


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Takes the calls out."""
    items, calls = graph.items, graph.base.recording.trace.calls
    role = calls.role[items.call] if len(calls) else items.call
    frees = (items.call >= 0) & (role == Role.ALLOCATE)
    staying = STAYING[estimate]
    return graph.with_items(
        gap=graph.gap_scaled(Activity.ALLOCATE, staying),
        cost=np.where(frees, scale_column(items.cost, staying), items.cost),
        lag=np.where(frees, scale_column(items.lag, staying), items.lag),
        drains=items.drains & ~(frees & (staying == 0.0)),
    )


SCENARIO = Scenario("allocator", apply)
