"""Replaces a loop of equal small calls, one per item of a batch, by one call for all items.

Changes: of each loop (measures/trace/fusion.py) only the first call's host time and launches remain. Kernels of
the other calls that fill the device take as long as now, because their work remains; those too small to fill it are
done with the first call's kernels.
Assumes: no call needs the result of another one, and there is memory for all items at once.
Bounds: low: half of the other calls' time stays. High: as expected.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.measures.trace.fusion import repeated_calls
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import REMAINING_SHARE, Scenario
from tb_bottleneck.roofline.underfilled import underfilled
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS

REMOVED_ACTIVITIES = (Activity.DISPATCH, Activity.OTHER)


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Removes the calls after the first one of each loop."""
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


SCENARIO = Scenario("batched_calls", apply)
