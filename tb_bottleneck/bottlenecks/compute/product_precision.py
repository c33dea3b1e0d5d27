"""Predicts the time of each operation if contractions run in another type on matrix units.

Contractions are matrix multiplications, convolutions and attention. If the work of a contraction is known from shapes,
its time is the longer of two times: arithmetic at the new rate, and memory traffic, with half of the bytes for a
half-precision type. Otherwise its speed-up is a power of the ratio of the rates.
Half precision is simulated as autocast: norms, softmax and losses keep their type, other operations between
contractions move fewer bytes, and casts need separate kernels.
"""

from collections.abc import Callable

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.bottlenecks.compute.wide_types import between_products, convolution_share
from tb_bottleneck.knowledge.catalogue import Precision, precision_of
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.roofline.kernel_bounds import TOO_SHORT_NS, BoundBy
from tb_bottleneck.roofline.operator_args import first_tensor_type, with_operand_type
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Bools, Floats, Ints

WIDE_TYPES = ("fp32", "tf32", "fp64")
HALF_TYPES = ("bf16", "fp16")
# Operands of this type are multiplied as fp32 or as TF32; only the kernel's name shows which.
FLOAT_OPERAND = "float"
# With autocast, a part of the other operations moves half of the bytes, but norms, softmax and losses stay the same,
# and casts are added. With these casts, 96 % of the time remained in Segment Anything 2 on an A100
# (cpuhrsch/segment-anything-2, a0b5ed7 to 0d0b92f), and 108 % in a small training on a T4. High: all other operations
# in half precision, and no casts.
AUTOCAST_BYTES = {Estimate.EXPECTED: 0.95, Estimate.LOW: 1.0, Estimate.HIGH: 0.5}
# In a convolution network, autocast keeps what follows a convolution in half precision: batch norms of cuDNN,
# activations, sums and pooling move half of the bytes. ResNet-50 at batch 128 took 0.449 s with autocast, as long as
# with .half(), and 0.81 s without (taiseitosaki/speedbook, Ampere). Low: a choice, as if three of five bytes kept their
# type.
CONVOLUTION_BYTES = {Estimate.EXPECTED: 0.55, Estimate.LOW: 0.8, Estimate.HIGH: 0.5}
# Without shapes, a product gets faster by the ratio of the rates to this power: 0 if traffic limits the product in both
# types, 1 if arithmetic does. Expected: the mean of two public pairs without and with autocast, whose products took 5.1
# times less at a ratio of 8.0 (T4, power 0.79) and 4.5 times less at 13.4 (Segment Anything 2, A100, power 0.58). Low:
# a choice.
GAIN_WITHOUT_SHAPES = {Estimate.EXPECTED: 0.69, Estimate.LOW: 0.25, Estimate.HIGH: 1.0}
# A Winograd convolution of 3 x 3 does this many times fewer multiplications than the convolution that replaces it on
# matrix units (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2016: F(2x2, 3x3)).
WINOGRAD = 2.25
# Autocast looks up and casts the operands of each product, forward and backward, which needs time of the host: for each
# product, this many times the time of an average operation. Three transformers whose host limits the step, with one
# product among four operations, took 1.17 to 1.21 times as long in bf16 as in 32 bits (H200 and H100, torch 2.11), that
# is 0.62 to 0.84. It takes at most LONGEST_CASTS_NS, the time on the slow host of that H100, because casts run without
# Python. Low: twice as much. High: none, as other models did not take longer.
AUTOCAST_DISPATCH = {Estimate.EXPECTED: 0.7, Estimate.LOW: 1.4, Estimate.HIGH: 0.0}
LONGEST_CASTS_NS = 30_000
# Casting needs some kernels of its own: 3 to 5 % of the time of products.
CAST_OVERHEAD = {Estimate.EXPECTED: 1.04, Estimate.LOW: 1.05, Estimate.HIGH: 1.03}


def rates_of_wider_products(recording: Recording, dtype: str, rate_of: Callable[[Precision], float | None]) -> Floats:
    """Returns per operation of the judged device the peak arithmetic rate of its recorded precision, for contractions
    in one of WIDE_TYPES other than `dtype`; 0 for all other operations.

    `rate_of` returns the device's peak rate for a precision, or None if the rate is not known. The result has the unit
    of `rate_of`.
    For a Winograd convolution, the rate is multiplied by WINOGRAD, because such a convolution does fewer
    multiplications.
    """
    ops = recording.trace.device_ops
    rates = np.zeros(len(ops))
    for name, rows in rows_by_name(ops.name):
        precision = multiplied_in(recording, name, int(rows[0]))
        if precision is not None and precision.dtype in WIDE_TYPES and precision.dtype != dtype:
            saved = WINOGRAD if "winograd" in recording.trace.names[name].lower() else 1.0
            rates[rows] = (rate_of(precision) or 0.0) * saved
    return np.where(ops.work == Work.CONTRACTION, rates, 0.0)


def multiplied_in(recording: Recording, name: int, op: int) -> Precision | None:
    """Returns the precision of a contraction, from the name of its kernel or otherwise from its operands.

    `name` is a row of `trace.names`, `op` a row of the device operations with this name. Returns None or a precision
    without a type if neither shows the type. If the operands are float and the name does not show the type, TF32 is
    assumed, which predicts the smaller gain.
    """
    operand = operand_type(recording, op)
    precision = with_operand_type(precision_of(recording.trace.names[name]), operand)
    if operand != FLOAT_OPERAND or (precision is not None and precision.dtype is not None):
        return precision
    return Precision("tensor", "tf32")


def precision_factors(
    recording: Recording, ratio: Floats, roofs: tuple[Floats, Floats], half: bool, estimate: Estimate
) -> Floats:
    """Returns per operation of the judged device (time with the new type / recorded time), at most 1.

    Args:
        recording: the recording.
        ratio: per operation, arithmetic rate of the new type / of the recorded type; 0 if the operation keeps its type.
        roofs: two arrays with one value per operation: time at the device's peak arithmetic rate / recorded time, and
            time at the device's peak bandwidth / recorded time.
        half: True if the new type is a half-precision type.
        estimate: whether to assume the expected, the low or the high effect.
    """
    ops, products, gain = recording.trace.device_ops, ratio > 0, np.maximum(ratio, 1.0)
    length = ops.end - ops.start
    is_known = recording.kernel_bounds.bound_by != BoundBy.UNKNOWN
    at_peak, at_bandwidth = roofs
    now = np.maximum(at_peak, at_bandwidth)
    then = np.maximum(at_peak / gain, at_bandwidth * (0.5 if half else 1.0))
    by_roof = then / np.where(is_known, np.maximum(now, 1e-9), 1.0)
    by_name = gain ** -GAIN_WITHOUT_SHAPES[estimate]
    factors = np.where(products, np.where(is_known, by_roof, by_name) * CAST_OVERHEAD[estimate], 1.0)
    if half:
        # Where products are already in half precision, the operations between them are, too, and nothing is saved.
        wide_share = float(length[products].sum() / max(length[ops.work == Work.CONTRACTION].sum(), 1))
        convolutions = min(convolution_share(recording), wide_share)
        saved = (1 - CONVOLUTION_BYTES[estimate]) * convolutions
        saved += (1 - AUTOCAST_BYTES[estimate]) * (wide_share - convolutions)
        factors = np.where(between_products(recording), 1 - saved, factors)
    return np.asarray(np.where(length < TOO_SHORT_NS, 1.0, np.minimum(factors, 1.0)), np.float64)


def with_autocast_dispatch(graph: ModifiedGraph, wide: Bools, estimate: Estimate) -> ModifiedGraph:
    """Returns the graph in which the host also casts the operands of the products `wide` (a mask of the judged device's
    operations). An average operation takes the time of the host alone, divided by the operations of the window."""
    recording = graph.base.recording
    per_step = np.count_nonzero(recording.in_window(recording.trace.device_ops.start)) / len(recording.steps)
    usual = AUTOCAST_DISPATCH[Estimate.EXPECTED]
    casts = AUTOCAST_DISPATCH[estimate] * min(graph.host_step() / max(per_step, 1.0), LONGEST_CASTS_NS / usual)
    casting = graph.of_operations(np.where(wide, 2.0, 1.0)) > 1
    return graph.with_gap(Activity.DISPATCH, graph.items.gap.of(Activity.DISPATCH) + np.int64(casts) * casting)


def times_at_recorded_roofs(recording: Recording) -> tuple[Floats, Floats]:
    """Returns two arrays with one value per operation of the judged device: time at the device's peak arithmetic rate /
    recorded time, and time at its peak bandwidth / recorded time. Unknown values are 0."""
    bounds = recording.kernel_bounds
    compute = bounds.bound_by == BoundBy.COMPUTE
    return np.where(compute, bounds.reached, bounds.other), np.where(compute, bounds.other, bounds.reached)


def operand_type(recording: Recording, op: int) -> str:
    """Returns the type of the first tensor argument of the operator that launched the device operation in row `op`, as
    the profiler names it, such as "float". Returns an empty text if the type is not known."""
    trace = recording.trace
    called, operator = trace.calling_operators
    ops = trace.device_ops
    if not ops.launched[op] or not called[ops.call[op]]:
        return ""
    operands = operands_of(trace.signatures[trace.events.signature[operator[ops.call[op]]]])
    return "" if operands is None else first_tensor_type(operands)


def rows_by_name(names: Ints) -> "list[tuple[int, Ints]]":
    """Returns for each distinct value in `names` the pair (value, positions in `names` that have this value)."""
    order = np.argsort(names, kind="stable")
    distinct, first = np.unique(names[order], return_index=True)
    return list(zip(distinct.tolist(), np.split(order, first[1:]), strict=True)) if len(names) else []
