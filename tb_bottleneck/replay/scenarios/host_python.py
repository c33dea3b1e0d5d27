"""Python between the steps is gone: moved into loader workers, onto the device, or out of the loop.

Changes: host time outside operators, loader and interruptions takes no time.
Assumes: nothing of it has to happen where it does.
Bounds: at worst half of it stays; at best none.
"""

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Case, World
from tb_bottleneck.replay.scenarios.scenario import Scenario

STAYING = {Case.EXPECTED: 0.0, Case.LOW: 0.5, Case.HIGH: 0.0}


def cure(world: World, case: Case) -> World:
    """Takes the time out; what overlaps, and so counts as less than nothing, stays."""
    gap = world.items.gap.copy(order="K")
    gap[:, Activity.OTHER] = (gap[:, Activity.OTHER].clip(min=0) * STAYING[case]).astype("int64") + gap[
        :, Activity.OTHER
    ].clip(max=0)
    return world.but(gap=gap)


SCENARIO = Scenario("host_python", cure, on_cpu=True)
