"""Uses a fused optimizer, which updates hundreds of parameters with each kernel.

Changes: inside Optimizer.step, dispatching and launches shrink to DISPATCH_LEFT of their time, and kernels follow one
another within FUSED_PAUSE_NS. The length of the kernels stays: they move the same bytes.
Assumes: the optimizer has a foreach or fused implementation.
Bounds: low: a third of the dispatching stays. High: none.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import Scenario

DISPATCH_LEFT = {Estimate.EXPECTED: 0.1, Estimate.LOW: 0.33, Estimate.HIGH: 0.0}
FUSED_PAUSE_NS = 1_000


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Shortens the optimizer's dispatching."""
    items = graph.items
    steps = graph.base.recording.optimizer_steps
    inside, part = graph.issued_in(steps), graph.gap_share_in(steps)
    remaining = DISPATCH_LEFT[estimate]
    return graph.with_items(
        gap=graph.gap_scaled(Activity.DISPATCH, 1 - part * (1 - remaining)),
        cost=np.where(inside, scale_column(items.cost, remaining), items.cost),
        pause=np.where(inside & (items.frozen == 0), np.minimum(items.pause, FUSED_PAUSE_NS), items.pause),
    )


SCENARIO = Scenario("optimizer", apply)
