"""Scenarios of precision and shapes: mixed precision, float32 instead of float64, and aligned sizes."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import distinct_values
from tb_bottleneck.bottlenecks.compute.product_precision import (
    HALF_TYPES,
    precision_factors,
    rates_of_wider_products,
    times_at_recorded_roofs,
    with_autocast_dispatch,
)
from tb_bottleneck.bottlenecks.compute.wide_types import double_kernels, double_time
from tb_bottleneck.knowledge.catalogue import misaligned, precision_of
from tb_bottleneck.knowledge.gpus import LEAST_DOUBLE_RATE, gpu_named
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenario import Scenario
from tb_bottleneck.roofline.device_peaks import peaks_of
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.table import Bools, Floats, Ints


def in_mixed_precision(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Runs matrix products and convolutions in half precision on matrix units, as with autocast.

    Returns None if the peaks of the device are unknown or the device has no such units.

    Changes: the length of contractions in fp32, TF32 or fp64 and of the operations between them, as the command
    `what-if --precision` predicts (bottlenecks/compute/product_precision.py). Devices without bf16 use fp16.
    Assumes: the model trains as well in half precision.
    Bounds: if shapes were recorded, a contraction takes at least as long as its memory traffic at the device's
    bandwidth. In the low estimate, dispatching takes longer; see the constants of
    bottlenecks/compute/product_precision.py.
    """
    recording = graph.base.recording
    peaks = peaks_of(recording.trace)
    if peaks is None:
        return None
    dtype = next((dtype for dtype in HALF_TYPES if peaks.tensor.get(dtype)), None)
    if dtype is None:
        return None
    rates = rates_of_wider_products(recording, dtype, lambda precision: peaks.of(precision) or peaks.vector)
    ratio = np.divide(peaks.tensor[dtype], rates, out=np.zeros(len(rates)), where=rates > 0)
    factors = precision_factors(recording, ratio, times_at_recorded_roofs(recording), True, estimate)
    slowed = with_autocast_dispatch(graph, rates > 0, estimate)
    return slowed.with_items(length=scale_column(graph.items.length, graph.of_operations(factors)))


MIXED_PRECISION = Scenario("precision", in_mixed_precision)


DOUBLE_LEFT = {Estimate.EXPECTED: 0.5, Estimate.LOW: 0.75, Estimate.HIGH: 0.33}
PRODUCTS_LEFT = {Estimate.EXPECTED: 0.5, Estimate.LOW: 1.0, Estimate.HIGH: LEAST_DOUBLE_RATE}
"""The part of the time that remains in float32, also for products on a device of unknown rates."""
HALF_OF_BYTES = 0.5


def in_single_precision(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Computes in float32 instead of float64.

    Changes: kernels (in a CPU run: operators) with float64 tensors take DOUBLE_LEFT of their time. The expected value
    is a half, because float32 has half of the bytes, and a vector unit of a CPU holds twice as many numbers.
    Assumes: the model trains as well in float32, and everything in float64 can be in float32.
    Bounds: in the low estimate, three quarters of the time remain. In the high estimate, a third remains, because more
    of the data fits into the caches. Contractions on a device are limited by its rates in both types instead
    (_products_left): on an H100, whose matrix units make them equal, a training became 1.28 times as fast.
    """
    recording = graph.base.recording
    if not recording.on_device:
        edges, recorded = recording.steps.edges, graph.base.graph.items.gap.of(Activity.DISPATCH)[1:]
        part = np.zeros(len(edges))
        part[1:] = np.minimum(double_time(recording).covered(edges[:-1], edges[1:]) / np.maximum(recorded, 1), 1.0)
        return graph.with_items(gap=graph.gap_scaled(Activity.DISPATCH, 1 - part * (1 - DOUBLE_LEFT[estimate])))
    products = recording.trace.device_ops.work == Work.CONTRACTION
    left = np.where(products, _products_left(recording, estimate), DOUBLE_LEFT[estimate])
    factors = np.where(double_kernels(recording), left, 1.0)
    return graph.with_items(length=scale_column(graph.items.length, graph.of_operations(factors)))


def _products_left(recording: Recording, estimate: Estimate) -> float:
    """Returns the part of the time of contractions in float64 that remains in float32 without TF32: the ratio of the
    device's rates. In the high estimate, float32 reaches more of its rate than float64. In the low one, half as much
    again remains, and at least the part that half of the memory traffic takes. Both bounds are choices."""
    trace = recording.trace
    facts = trace.header.device(trace.device_index)
    gpu = gpu_named(facts.name) if facts is not None else None
    if gpu is None:
        return PRODUCTS_LEFT[estimate]
    rate = gpu.double_rate
    low = min(max(1.5 * rate, HALF_OF_BYTES), 1.0)
    return {Estimate.EXPECTED: rate, Estimate.LOW: low, Estimate.HIGH: 0.75 * rate}[estimate]


SINGLE_PRECISION = Scenario("double_precision", in_single_precision, on_cpu=True)


BEST_TIME_SHARE = 0.9
# With fewer aligned products in the recording, other recordings give the rate.
MIN_ALIGNED = 3
TYPICAL_REACHED = {Estimate.EXPECTED: 0.70, Estimate.LOW: 0.32, Estimate.HIGH: 1.06}
"""Share of the reachable peak that aligned products on matrix units reach, weighted by time, in 19 public and own
recordings with at least 8 ms of such products (A100, H100, H200, MI300X). Expected: the median. Low: the lowest of the
medians. High: the best tenth."""


def with_aligned_shapes(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Pads the sizes of tensors, in order that contractions load their operands at full width.

    Returns None if no contraction would become faster, for example because no shapes were recorded.

    Changes: kernels for unaligned sizes reach the same share of the device's peak as the aligned contractions of their
    type or, if too few of these ran, as aligned contractions in other recordings (TYPICAL_REACHED).
    Assumes: padding adds little work, and aligned contractions of these sizes are as efficient as the recorded ones.
    Bounds: a contraction takes at least as long as its memory traffic at the device's bandwidth. In the low estimate,
    half of the possible saving is assumed. In the high estimate, kernels reach the share that the best tenth (by time)
    of the aligned contractions exceeds.
    """
    recording = graph.base.recording
    ops, bounds, names = recording.trace.device_ops, recording.kernel_bounds, recording.trace.names
    compute_bound = (ops.work == Work.CONTRACTION) & (bounds.bound_by == BoundBy.COMPUTE) & (bounds.reached > 0)
    odd = name_matches(names, ops.name, misaligned)
    factors = np.ones(len(ops))
    for dtype in {_dtype(names[name]) for name in distinct_values(ops.name[compute_bound & odd]).tolist()}:
        same_type = compute_bound & name_matches(names, ops.name, lambda name, dtype=dtype: _dtype(name) == dtype)  # type: ignore[misc]
        rate = _rate(bounds.reached, ops.end - ops.start, same_type & ~odd, best=estimate is Estimate.HIGH)
        if rate is None:
            rate = TYPICAL_REACHED[estimate]
        rows = same_type & odd
        factors[rows] = np.clip(bounds.reached[rows] / rate, np.minimum(bounds.other[rows], 1.0), 1.0)
    if not (factors < 1).any():
        return None
    halfway = (1 + factors) / 2 if estimate is Estimate.LOW else factors
    return graph.with_items(length=scale_column(graph.items.length, graph.of_operations(halfway)))


def _dtype(name: str) -> tuple[str, str | None] | None:
    precision = precision_of(name)
    return (precision.unit, precision.dtype) if precision is not None else None


def _rate(reached: Floats, length: Ints, rows: Bools, best: bool) -> float | None:
    """Returns the share of the device's peak that the contractions in the mask `rows` reach, weighted by time.

    `reached` (share of the peak) and `length` (ns) have one value per operation. The result is the median or, if `best`
    is True, the 90 % quantile. Returns None if `rows` has fewer than MIN_ALIGNED operations.
    """
    selected = np.flatnonzero(rows)
    if len(selected) < MIN_ALIGNED:
        return None
    order = selected[np.argsort(reached[selected], kind="stable")]
    time = np.cumsum(length[order])
    return float(reached[order[np.searchsorted(time, time[-1] * (BEST_TIME_SHARE if best else 0.5))]])


ALIGNED_SHAPES = Scenario("alignment", with_aligned_shapes)

FIXES = {
    "fp32_matmul": MIXED_PRECISION,
    "fp32_without_tf32": MIXED_PRECISION,
    "double_precision": SINGLE_PRECISION,
    "misaligned_shapes": ALIGNED_SHAPES,
}
"""The scenario that simulates the fix of each cause."""
