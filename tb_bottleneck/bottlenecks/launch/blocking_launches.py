"""Measures of launches that wait for their kernel, as with CUDA_LAUNCH_BLOCKING=1, and the fix."""

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.measures.trace.window_rows import in_host_steps
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenario import Scenario
from tb_bottleneck.trace.runtime_calls import Role

MIN_LAUNCHES, LONGER_NS = 20, 20_000
"""Only launches of kernels of at least LONGER_NS count, since a shorter one may end within a usual launch. With fewer
than MIN_LAUNCHES of them, no share is stated."""
ASYNCHRONOUS_NS = {Estimate.EXPECTED: 10_000, Estimate.LOW: 20_000, Estimate.HIGH: 5_000}
"""Time of a launch that does not wait: 10.4 and 10.6 us by the calibration of an H200 and an H100. The bounds are a
choice."""


@memoized
def blocking_share(recording: Recording) -> Measure | Missing:
    """Share of the launches that return only when their kernel has ended; of kernels that take longer than a launch."""
    ops, calls = recording.trace.device_ops, recording.trace.calls
    rows = np.flatnonzero(ops.launched & (ops.end - ops.start >= LONGER_NS))
    rows = rows[(calls.role[ops.call[rows]] == Role.LAUNCH)] if len(rows) else rows
    rows = rows[in_host_steps(recording, calls.start[ops.call[rows]])] if len(rows) else rows
    if len(rows) < MIN_LAUNCHES:
        return Missing("too few launches were recorded")
    waited = calls.end[ops.call[rows]] >= ops.end[rows]
    return Measure(float(waited.mean()), "share", "", len(rows))


def without_blocking(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Lets launches return at once.

    Changes: a launch takes at most ASYNCHRONOUS_NS, and waits for nothing.
    """
    items, calls = graph.items, graph.base.recording.trace.calls
    launches = (items.call >= 0) & (calls.role[items.call] == Role.LAUNCH)
    cost = np.where(launches, np.minimum(items.cost, ASYNCHRONOUS_NS[estimate]), items.cost)
    return graph.with_items(cost=cost, waits=np.where(launches, NONE, items.waits), drains=items.drains & ~launches)


ASYNCHRONOUS = Scenario("asynchronous_launches", without_blocking)
