"""The step is compiled, and replayed as a graph: the host no longer dispatches operator by operator.

Changes: dispatching outside the optimizer takes REPLAYED of its time, kernels follow one another within GRAPH_PAUSE_NS.
Assumes: shapes do not change from step to step, and nothing in the step makes the host wait.
Bounds: at worst compiling halves the dispatching and no graph can be captured; at best the optimizer is captured too.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Case, World, scaled
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.device_ops import Work

# What is left of the dispatching: one call per graph instead of one per kernel.
REPLAYED = 0.05
HALVED = 0.5
GRAPH_PAUSE_NS = 1_000
KERNELS = (Work.CONTRACTION, Work.STREAMING, Work.UNKNOWN, Work.DEVICE_COPY)


def cure(world: World, case: Case) -> World:
    """Scales the dispatching."""
    items = world.items
    kernels = world.works(*KERNELS)
    if case is Case.LOW:
        cost = np.where(kernels, scaled(items.cost, HALVED), items.cost)
        return world.but(gap=world.gap_scaled(Activity.DISPATCH, HALVED), cost=cost)
    optimizer = world.facts.spans_named("Optimizer.step#")
    eager = world.gap_inside(optimizer) if case is Case.EXPECTED else 0.0
    captured = kernels & ~world.inside(optimizer) if case is Case.EXPECTED else kernels
    return world.but(
        gap=world.gap_scaled(Activity.DISPATCH, eager + (1 - eager) * REPLAYED),
        cost=np.where(captured, scaled(items.cost, REPLAYED), items.cost),
        pause=np.where(captured, np.minimum(items.pause, GRAPH_PAUSE_NS), items.pause),
    )


SCENARIO = Scenario("launches", cure)
