"""The driver is no longer asked for memory: the caching allocator serves every request itself.

Changes: calls that allocate or free take no time, and nobody waits for the device in them.
Assumes: memory suffices to keep what was freed.
Bounds: at worst half of the calls stay, as where sizes change every step; at best none does.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Case, World, scaled
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.runtime_calls import Role

STAYING = {Case.EXPECTED: 0.0, Case.LOW: 0.5, Case.HIGH: 0.0}


def cure(world: World, case: Case) -> World:
    """Takes the calls out."""
    items, calls = world.items, world.facts.recording.trace.calls
    role = calls.role[items.call] if len(calls) else items.call
    frees = (items.call >= 0) & (role == Role.ALLOCATE)
    staying = STAYING[case]
    return world.but(
        gap=world.gap_scaled(Activity.ALLOCATE, staying),
        cost=np.where(frees, scaled(items.cost, staying), items.cost),
        lag=np.where(frees, scaled(items.lag, staying), items.lag),
        drains=items.drains & ~(frees & (staying == 0.0)),
    )


SCENARIO = Scenario("allocator", cure)
