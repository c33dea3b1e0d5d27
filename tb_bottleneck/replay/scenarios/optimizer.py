"""The optimizer updates hundreds of parameters with each kernel.

Changes: inside Optimizer.step, dispatching and launches shrink to FEWER of their time, and kernels follow one another
within FUSED_PAUSE_NS. What the kernels themselves take stays: they move the same bytes.
Assumes: the optimizer has a foreach or fused implementation.
Bounds: at worst a third of the dispatching stays; at best none.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Case, World, scaled
from tb_bottleneck.replay.scenarios.scenario import Scenario

FEWER = {Case.EXPECTED: 0.1, Case.LOW: 0.33, Case.HIGH: 0.0}
FUSED_PAUSE_NS = 1_000


def cure(world: World, case: Case) -> World:
    """Shrinks the optimizer's dispatching."""
    items = world.items
    steps = world.facts.spans_named("Optimizer.step#")
    inside, part = world.inside(steps), world.gap_inside(steps)
    left = FEWER[case]
    return world.but(
        gap=world.gap_scaled(Activity.DISPATCH, 1 - part * (1 - left)),
        cost=np.where(inside, scaled(items.cost, left), items.cost),
        pause=np.where(inside & (items.frozen == 0), np.minimum(items.pause, FUSED_PAUSE_NS), items.pause),
    )


SCENARIO = Scenario("optimizer", cure)
