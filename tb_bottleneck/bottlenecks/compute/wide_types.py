"""Measures of work in wide number types: networks of convolutions in 32 bits, and float64."""

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import distinct_rows, heaviest_value
from tb_bottleneck.base.intervals import Spans, intersect, merge, union
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.compute.kernel_efficiency import MOSTLY
from tb_bottleneck.knowledge.catalogue import precision_of
from tb_bottleneck.measures.trace.window_rows import window_share
from tb_bottleneck.roofline.device_peaks import has_matrix_units
from tb_bottleneck.roofline.operator_args import has_double_operand
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work
from tb_bottleneck.trace.kernel_names import cut, name_matches, short
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Bools, Ints
from tb_bottleneck.trace.trace import Trace

_WIDE_TYPES = ("fp32", "tf32")


@memoized
def convolution_share(recording: Recording) -> float:
    """Returns the share (0 to 1) of the contractions' time that is in convolutions in fp32 or tf32. Contractions are
    matrix multiplications, convolutions and attention."""
    ops = recording.trace.device_ops
    products = ops.work == Work.CONTRACTION
    wide = name_matches(recording.trace.names, ops.name, _is_wide)
    length = ops.end - ops.start
    whole = int(length[products].sum())
    return float(length[products & wide & _convolves(recording)].sum() / whole) if whole else 0.0


@memoized
def between_products(recording: Recording) -> Bools:
    """Returns a mask of the device operations other than contractions that autocast may run in half precision.
    Operations that the optimizer launches are excluded, because parameters are updated in their own type."""
    ops = recording.trace.device_ops
    updates = recording.optimizer_time.contains(ops.issued(recording.trace.calls))
    return np.asarray(np.isin(ops.work, (Work.STREAMING, Work.UNKNOWN)) & ~updates, np.bool_)


def wide_activations(recording: Recording) -> Measure | Missing:
    """For a network of convolutions in 32 bits: share of the window in the device operations of `between_products`,
    whose activations have twice as many bytes as in half precision.

    Missing if most contractions are not convolutions in 32 bits, or if the device is not known to have matrix units.
    """
    if not has_matrix_units(recording.trace) or convolution_share(recording) <= MOSTLY:
        return Missing("most products are not known to be convolutions in 32 bits")
    ops = recording.trace.device_ops.take(between_products(recording))
    return window_share(recording, ops.start, ops.end)


def _is_wide(name: str) -> bool:
    precision = precision_of(name)
    return precision is not None and precision.dtype in _WIDE_TYPES


def _convolves(recording: Recording) -> Bools:
    """Returns a mask of the device operations that a convolution operator launched."""
    trace, ops = recording.trace, recording.trace.device_ops
    found = np.zeros(len(ops), np.bool_)
    if not len(trace.calls):
        return found
    called, operator = trace.calling_operators
    rows = np.flatnonzero(ops.launched)
    rows = rows[called[ops.call[rows]]]
    names = trace.events.name[operator[ops.call[rows]]]
    found[rows] = name_matches(trace.names, names, lambda name: "convolution" in name)
    return found


def double_precision_share(recording: Recording) -> Measure | Missing:
    """Share of the window in float64 kernels, or in float64 operators on a CPU run."""
    if not recording.trace.signatures and not recording.on_device:
        return Missing("the types of operators were not recorded; record_shapes=True records them")
    if recording.on_device:
        ops = recording.trace.device_ops.take(double_kernels(recording))
        spans = union(ops.start, ops.end)
    else:
        spans = double_time(recording)
    return window_share(recording, spans.starts, spans.ends)


def costliest_in_double(recording: Recording) -> Measure | Missing:
    """The name of the float64 kernel, or operator on a CPU run, with the most time (untrusted text)."""
    trace = recording.trace
    if recording.on_device:
        ops = trace.device_ops.take(double_kernels(recording))
        name, time = ops.name, ops.end - ops.start
    else:
        mask, operators = double_operators(recording), recording.main_operators
        name, time = trace.events.name[operators.rows[mask]], operators.own[mask]
    if not len(name):
        return Missing("nothing works in float64")
    costliest = heaviest_value(name, time)
    shown = short(trace.names[costliest]) if recording.on_device else cut(trace.names[costliest])
    return text_measure(shown, int((name == costliest).sum()))


@memoized
def double_operators(recording: Recording) -> Bools:
    """Returns a mask of `recording.main_operators`, the main thread's operators: True if a tensor of the operator is
    float64."""
    return _with_double_operand(recording.trace, recording.main_operators.rows)


@memoized
def double_time(recording: Recording) -> Spans:
    """Returns the time in which operators work in float64, for a training on the CPU."""
    operators, spans = recording.main_operators, recording.owned_spans
    rows = double_operators(recording)[operators.work_of]
    worked = union(operators.work_start[rows], operators.work_end[rows])
    return intersect(worked, merge(spans.of(Regime.COMPUTE), spans.of(Regime.MEMORY)))


@memoized
def double_kernels(recording: Recording) -> Bools:
    """Returns a mask of the device operations: True for kernels in float64, according to their operators or their
    names.

    An operator works in float64 if one of its tensors is float64.
    """
    trace, ops = recording.trace, recording.trace.device_ops
    mask = name_matches(trace.names, ops.name, _is_double)
    called, operator = trace.calling_operators
    rows = np.flatnonzero(ops.launched)
    rows = rows[called[ops.call[rows]]]
    mask[rows] |= _with_double_operand(trace, operator[ops.call[rows]])
    return np.asarray(mask & np.isin(ops.work, COMPUTE_KERNELS), np.bool_)


def _is_double(name: str) -> bool:
    precision = precision_of(name)
    return precision is not None and precision.dtype == "fp64"


def _with_double_operand(trace: Trace, rows: Ints) -> Bools:
    """Returns a mask of the event rows `rows`: True if a tensor of the event is float64. Each distinct signature is
    decoded once."""
    signatures = trace.events.signature[rows]
    first, which = distinct_rows(signatures)
    operands = [operands_of(trace.signatures[number]) if number else None for number in signatures[first].tolist()]
    found = np.array([each is not None and has_double_operand(each) for each in operands], np.bool_)
    return np.asarray(found[which], np.bool_)
