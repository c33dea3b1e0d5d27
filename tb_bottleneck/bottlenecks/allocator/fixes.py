"""The scenario of an allocator that serves every request itself."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenario import REMAINING_SHARE, Scenario
from tb_bottleneck.trace.runtime_calls import Role


def without_allocations(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Stops requesting memory from the driver: the caching allocator serves every request itself.

    Changes: driver calls that allocate or free memory take no time, and no longer wait for the device.
    Assumes: there is enough device memory to keep freed blocks in the cache.
    Bounds: in the low estimate, half of the time stays, as if sizes changed every step, and the calls still wait. The
    high estimate equals the expected one.
    """
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


WITHOUT_ALLOCATIONS = Scenario("allocator", without_allocations)

FIXES = {
    "empty_cache": WITHOUT_ALLOCATIONS,
    "memory_pressure": WITHOUT_ALLOCATIONS,
    "pinned_allocations": WITHOUT_ALLOCATIONS,
    "growing_memory": WITHOUT_ALLOCATIONS,
}
"""The scenario that simulates the fix of each cause."""
