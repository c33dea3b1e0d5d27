"""Compiles the step and replays it as a CUDA graph: the host no longer dispatches operator by operator.

Changes: dispatching outside the optimizer takes GRAPH_DISPATCH_SHARE of its time; kernels follow one another within
GRAPH_PAUSE_NS.
Assumes: shapes do not change from step to step, and nothing in the step makes the host wait.
Bounds: low: compilation halves the dispatching, and no graph can be captured. High: the optimizer is captured too.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.device_ops import Work

# The remaining share of the dispatching: one call per graph instead of one per kernel.
GRAPH_DISPATCH_SHARE = 0.05
COMPILED_DISPATCH_SHARE = 0.5
GRAPH_PAUSE_NS = 1_000
CAPTURED_WORK = (Work.CONTRACTION, Work.STREAMING, Work.UNKNOWN, Work.DEVICE_COPY)


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Scales the dispatching."""
    items = graph.items
    kernels = graph.with_work(*CAPTURED_WORK)
    if estimate is Estimate.LOW:
        cost = np.where(kernels, scale_column(items.cost, COMPILED_DISPATCH_SHARE), items.cost)
        return graph.with_items(gap=graph.gap_scaled(Activity.DISPATCH, COMPILED_DISPATCH_SHARE), cost=cost)
    optimizer = graph.base.recording.optimizer_steps
    eager = graph.gap_share_in(optimizer) if estimate is Estimate.EXPECTED else 0.0
    captured = kernels & ~graph.issued_in(optimizer) if estimate is Estimate.EXPECTED else kernels
    return graph.with_items(
        gap=graph.gap_scaled(Activity.DISPATCH, eager + (1 - eager) * GRAPH_DISPATCH_SHARE),
        cost=np.where(captured, scale_column(items.cost, GRAPH_DISPATCH_SHARE), items.cost),
        pause=np.where(captured, np.minimum(items.pause, GRAPH_PAUSE_NS), items.pause),
    )


SCENARIO = Scenario("launches", apply)
