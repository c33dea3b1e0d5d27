"""Scenarios with fewer launches: CUDA graphs and batched calls.

Scenarios of fused optimizers: one kernel for many parameters, which reads and writes each parameter once.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, intersect
from tb_bottleneck.base.measure import Measure
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.launch.anomaly_detection import anomaly_detection
from tb_bottleneck.bottlenecks.launch.blocking_launches import ASYNCHRONOUS
from tb_bottleneck.bottlenecks.launch.device_checks import device_checks
from tb_bottleneck.bottlenecks.launch.operator_loops import repeated_calls
from tb_bottleneck.bottlenecks.launch.optimizer_traffic import optimizer_traffic
from tb_bottleneck.bottlenecks.launch.recurrent_cells import recurrent_cells
from tb_bottleneck.bottlenecks.launch.scattered_updates import scattered_updates
from tb_bottleneck.bottlenecks.memory.fusion import optimizer_pointwise
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenario import REMAINING_SHARE, Scenario, scaled_on_cpu, waiting, with_quicker_operators
from tb_bottleneck.roofline.kernel_bounds import underfilled
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work
from tb_bottleneck.trace.table import Floats

DISPATCH_LEFT = {Estimate.EXPECTED: 0.05, Estimate.LOW: 0.33, Estimate.HIGH: 0.0}
"""On an H100 (torch 2.11), a fused step took the host 0.8 to 1.2 ms for 75 to 100 parameters, and 1.4 ms for 200; the
loop took 39 ms for 293, so that 0.05 remains. The bounds are a choice."""
FUSED_PAUSE_NS = 1_000
ELEMENTS = (2**10, 2**12, 2**14, 2**16)
PER_TRAFFIC_ON_CPU = (0.44, 0.57, 0.71, 0.87)
"""The ratio: (time fused / time of the loop) / (traffic fused / traffic of the loop), for each number of elements of a
parameter in ELEMENTS. The values are medians of seven kinds of optimizers with matrices of 8 to 4,096 rows (torch 2.13,
one core of an AMD EPYC)."""
OF_MEDIAN_ON_CPU = {Estimate.EXPECTED: 1.0, Estimate.LOW: 1.55, Estimate.HIGH: 0.64}
"""The range of the measurements of PER_TRAFFIC_ON_CPU relative to their medians. One measurement is left out: 0.45 for
Adam, whose loop allocates its temporaries."""
PER_TRAFFIC_ON_DEVICE = {Estimate.EXPECTED: 1.0, Estimate.LOW: 1.5, Estimate.HIGH: 0.8}
"""The ratio of PER_TRAFFIC_ON_CPU on a device. The expected value is 1, because bandwidth limits both optimizers. The
bounds are a choice: a cache that holds a parameter makes the later passes of the loop faster."""

MAX_UNKNOWN = 0.2
"""Share of the window in pointwise kernels of the optimizer from which on these kernels are a cause of their own
(bottlenecks/memory/rule.py)."""


def with_fused_optimizer(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Uses a fused optimizer, which updates hundreds of parameters with each kernel.

    Returns None if the memory traffic of the optimizer is not known (optimizer_traffic), and either the run is on the
    CPU or the pointwise kernels of the optimizer take more than MAX_UNKNOWN of the window.

    Changes: on a device, dispatching and launches inside Optimizer.step take DISPATCH_LEFT of their time, and pauses
    between its kernels are at most FUSED_PAUSE_NS. The time of kernels limited by memory is multiplied by the remaining
    share of the traffic and by PER_TRAFFIC_ON_DEVICE; it stays the same if the traffic is not known. On the CPU, the
    time of operators and Python inside Optimizer.step is multiplied by the remaining share of the traffic and by
    PER_TRAFFIC_ON_CPU. No time gets longer.
    Assumes: the optimizer has a fused implementation.
    Bounds: the low and the high estimate use the corresponding values of DISPATCH_LEFT, PER_TRAFFIC_ON_DEVICE and
    OF_MEDIAN_ON_CPU.
    """
    recording = graph.base.recording
    steps, traffic = recording.optimizer_steps, optimizer_traffic(recording)
    if traffic is None and (not recording.on_device or _kernel_share(recording) > MAX_UNKNOWN):
        return None
    if traffic is not None and not recording.on_device:
        usual = float(np.interp(np.log2(traffic.elements), np.log2(ELEMENTS), PER_TRAFFIC_ON_CPU))
        return scaled_on_cpu(graph, steps, min(traffic.left * usual * OF_MEDIAN_ON_CPU[estimate], 1.0))
    items, remaining = graph.items, DISPATCH_LEFT[estimate]
    inside, part = graph.issued_in(steps), graph.gap_share_in(steps)
    left = 1.0 if traffic is None else min(traffic.left * PER_TRAFFIC_ON_DEVICE[estimate], 1.0)
    streams = inside & graph.with_work(Work.STREAMING)
    return graph.with_items(
        gap=graph.gap_scaled(Activity.DISPATCH, 1 - part * (1 - remaining)),
        cost=np.where(inside, scale_column(items.cost, remaining), items.cost),
        length=scale_column(items.length, np.where(streams, left, 1.0)),
        pause=np.where(inside & (items.frozen == 0), np.minimum(items.pause, FUSED_PAUSE_NS), items.pause),
    )


FUSED_OPTIMIZER = Scenario("optimizer", with_fused_optimizer, on_cpu=True)


def _kernel_share(recording: Recording) -> float:
    share = optimizer_pointwise(recording)
    return share.value if isinstance(share, Measure) else 0.0


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
    return without_repeats(graph, repeated_calls(graph.base.recording).others, REMAINING_SHARE[estimate])


def without_repeats(graph: ModifiedGraph, others: Spans, remaining: float, large: float = 1.0) -> ModifiedGraph:
    """Leaves the part `remaining` of repeated calls, whose times are `others`, as `with_batched_calls` describes it.
    Kernels of these calls that fill the device take `large` times as long as recorded."""
    items = graph.items
    inside = graph.issued_in(others)
    small = underfilled(graph.base.ops, graph.base.recording.trace.multiprocessors)[items.op]
    computes = inside & graph.with_work(*COMPUTE_KERNELS)
    small &= computes
    gap, scale = items.gap, 1 - graph.gap_share_in(others) * (1 - remaining)
    for activity in REMOVED_ACTIVITIES:
        time = gap.of(activity)
        gap = gap.with_column(activity, scale_column(time, np.where(time > 0, scale, 1.0)))
    return graph.with_items(
        gap=gap,
        cost=np.where(inside, scale_column(items.cost, remaining), items.cost),
        length=scale_column(items.length, np.where(small, remaining, np.where(computes, large, 1.0))),
        pause=np.where(small, scale_column(items.pause, remaining), items.pause),
    )


BATCHED_CALLS = Scenario("batched_calls", with_batched_calls)


def without_checks(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Removes checks of values on the device (bottlenecks/launch/device_checks.py).

    Changes: the host time, the launches and the waits of checks, and their kernels that are too small to fill the
    device, are removed.
    Assumes: the checks are made rarely, or on the device.
    Bounds: in the low estimate, half of the removed time stays, and so do the waits. The high estimate equals the
    expected one.
    """
    checks = device_checks(graph.base.recording)
    fixed = without_repeats(graph, checks, REMAINING_SHARE[estimate])
    gone = waiting(graph) & graph.issued_in(checks) & (estimate is not Estimate.LOW)
    return fixed.with_items(waits=np.where(gone, NONE, graph.items.waits), drains=graph.items.drains & ~gone)


CHECKS = Scenario("checks", without_checks)
FOREACH_LEFT = {Estimate.EXPECTED: 0.05, Estimate.LOW: 0.5, Estimate.HIGH: 0.0}
"""The part of the launches that remains if torch._foreach_* updates hundreds of tensors at once. The bounds are those
of other loops."""
FOREACH_LEFT_ON_CPU = {Estimate.EXPECTED: 0.36, Estimate.LOW: 0.7, Estimate.HIGH: 0.2}
"""The part of the time of calls that remains on a CPU, where torch loops over the tensors itself: 0.34 to 0.36 for an
average of weights, norms and clipping of 200 small tensors (torch 2.13, AMD EPYC). The bounds are a choice."""


def with_foreach(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Updates all tensors of a Python loop together (bottlenecks/launch/scattered_updates.py).

    Changes: of the host time, the launches, and the kernels that are too small to fill the device, FOREACH_LEFT
    remains; of the time of calls on a CPU, FOREACH_LEFT_ON_CPU.
    Assumes: the updates do not depend on each other.
    """
    recording, loops = graph.base.recording, scattered_updates(graph.base.recording)
    if recording.on_device:
        return without_repeats(graph, loops, FOREACH_LEFT[estimate])
    calls = intersect(loops, recording.owned_spans.of(Regime.LAUNCH))
    return scaled_on_cpu(graph, calls, FOREACH_LEFT_ON_CPU[estimate])


FOREACH = Scenario("foreach", with_foreach, on_cpu=True)
CELLS_LEFT = {Estimate.EXPECTED: 0.1, Estimate.LOW: 0.5, Estimate.HIGH: 0.05}
"""The part of a loop over recurrent cells that remains in one call of cuDNN. A choice: one call launches a few kernels
for each layer and chunk of time steps."""


def with_recurrent_layer(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Calls nn.LSTM or nn.GRU once, in place of a loop over recurrent cells (bottlenecks/launch/recurrent_cells.py).

    Changes: of the host time, the launches, and the kernels that are too small to fill the device, CELLS_LEFT remains.
    Assumes: the loop does nothing between two cells that depends on their results.
    """
    return without_repeats(graph, recurrent_cells(graph.base.recording), CELLS_LEFT[estimate])


RECURRENT_LAYER = Scenario("recurrent_layer", with_recurrent_layer)


def without_anomaly_detection(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Removes the tracebacks and checks of anomaly detection (bottlenecks/launch/anomaly_detection.py). On a CPU, the
    other operators get a little faster (with_quicker_operators): three trainings gained 1.9, 2.9 and 6.4 where 1.6, 2.5
    and 3.7 follow from the removed time alone.

    Bounds: in the low estimate, half of their time stays, since the profiler slows Python most. The high estimate
    equals the expected one.
    """
    recording, remaining = graph.base.recording, REMAINING_SHARE[estimate]
    spans = anomaly_detection(recording)
    if not recording.on_device:
        fixed = scaled_on_cpu(graph, spans, remaining)
        return fixed if estimate is Estimate.LOW else with_quicker_operators(graph, fixed)
    return without_repeats(graph, spans, remaining)


NO_ANOMALY_DETECTION = Scenario("anomaly_detection", without_anomaly_detection, on_cpu=True)

FIXES = {
    "small_kernels": GRAPH,
    "no_graph": GRAPH,
    "unbatched_calls": BATCHED_CALLS,
    "anomaly_detection": NO_ANOMALY_DETECTION,
    "blocking_launches": ASYNCHRONOUS,
    "device_checks": CHECKS,
    "recurrent_cells": RECURRENT_LAYER,
    "scattered_updates": FOREACH,
    "optimizer_for_loop": FUSED_OPTIMIZER,
}
"""The scenario that simulates the fix of each cause."""
