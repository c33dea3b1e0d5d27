"""Scenarios with fewer launches: CUDA graphs and batched calls."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.bottlenecks.launch.optimizers import FUSED_OPTIMIZER
from tb_bottleneck.bottlenecks.memory.fusion import repeated_calls
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenario import REMAINING_SHARE, Scenario
from tb_bottleneck.roofline.kernel_bounds import underfilled
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work
from tb_bottleneck.trace.table import Floats

# The remaining share of the dispatching: one call per graph instead of one per kernel.
GRAPH_DISPATCH_SHARE = 0.05
COMPILED_DISPATCH_SHARE = 0.5
# Between the kernels of one graph launch: 0.26 us at the median on an H200 (demo/recorded). In public recordings, on
# average 0.44 us on an RTX 3060, 0.66 us on an L40, and none on an MI300X.
GRAPH_PAUSE_NS = 500
# On an H200 (torch 2.11), a graph of 401 kernels took 0.62 ms, its kernels 0.57 ms, in place of a step of 6.0 ms.
SHORTEST_GRAPH_PAUSE_NS, LEAST_DISPATCH_SHARE = 100, 0.01
CAPTURED_WORK = (Work.CONTRACTION, Work.STREAMING, Work.UNKNOWN, Work.DEVICE_COPY)


def as_graph(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Compiles the step and replays it as a CUDA graph: the host no longer dispatches each operator.

    Changes: dispatching outside the optimizer takes GRAPH_DISPATCH_SHARE of its time; pauses between kernels are at
    most GRAPH_PAUSE_NS.
    Assumes: shapes do not change from step to step, and nothing in the step makes the host wait.
    Bounds: in the low estimate, compilation halves the dispatching, and no graph can be captured. In the high estimate,
    the optimizer is captured too, dispatching takes LEAST_DISPATCH_SHARE of its time, and pauses are at most
    SHORTEST_GRAPH_PAUSE_NS.
    """
    items = graph.items
    kernels = graph.with_work(*CAPTURED_WORK)
    if estimate is Estimate.LOW:
        cost = np.where(kernels, scale_column(items.cost, COMPILED_DISPATCH_SHARE), items.cost)
        return graph.with_items(gap=graph.gap_scaled(Activity.DISPATCH, COMPILED_DISPATCH_SHARE), cost=cost)
    optimizer, share, pause = graph.base.recording.optimizer_steps, LEAST_DISPATCH_SHARE, SHORTEST_GRAPH_PAUSE_NS
    eager: Floats | float = 0.0
    captured = kernels
    if estimate is Estimate.EXPECTED:
        eager, share, pause = graph.gap_share_in(optimizer), GRAPH_DISPATCH_SHARE, GRAPH_PAUSE_NS
        captured = kernels & ~graph.issued_in(optimizer)
    return graph.with_items(
        gap=graph.gap_scaled(Activity.DISPATCH, eager + (1 - eager) * share),
        cost=np.where(captured, scale_column(items.cost, share), items.cost),
        pause=np.where(captured, np.minimum(items.pause, pause), items.pause),
    )


GRAPH = Scenario("launches", as_graph)


REMOVED_ACTIVITIES = (Activity.DISPATCH, Activity.OTHER)


def with_batched_calls(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Replaces a loop of equal small calls, one per sample of a batch, by one call for all samples.

    Changes: of each loop (bottlenecks/memory/fusion.py), only the host time and the launches of the first call remain.
    Of the other calls, kernels that fill the device take as long as recorded, because their work remains; kernels that
    are too small to fill the device take no time, because the kernels of the first call do their work in parallel.
    Assumes: no call needs the result of another one, and there is memory for all samples at once.
    Bounds: in the low estimate, half of the removed time stays. The high estimate equals the expected one.
    """
    items, others = graph.items, repeated_calls(graph.base.recording).others
    remaining = REMAINING_SHARE[estimate]
    inside = graph.issued_in(others)
    small = underfilled(graph.base.ops, graph.base.recording.trace.multiprocessors)[items.op]
    small &= inside & graph.with_work(*COMPUTE_KERNELS)
    gap, scale = items.gap, 1 - graph.gap_share_in(others) * (1 - remaining)
    for activity in REMOVED_ACTIVITIES:
        time = gap.of(activity)
        gap = gap.with_column(activity, scale_column(time, np.where(time > 0, scale, 1.0)))
    return graph.with_items(
        gap=gap,
        cost=np.where(inside, scale_column(items.cost, remaining), items.cost),
        length=np.where(small, scale_column(items.length, remaining), items.length),
        pause=np.where(small, scale_column(items.pause, remaining), items.pause),
    )


BATCHED_CALLS = Scenario("batched_calls", with_batched_calls)

FIXES = {
    "small_kernels": GRAPH,
    "no_graph": GRAPH,
    "unbatched_calls": BATCHED_CALLS,
    "optimizer_for_loop": FUSED_OPTIMIZER,
}
"""The scenario that simulates the fix of each cause."""
