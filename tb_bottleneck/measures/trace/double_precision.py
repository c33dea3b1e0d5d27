"""Work in float64: operators with a float64 tensor, and the device operations that they launch."""

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import Spans, intersect, merge, union
from tb_bottleneck.knowledge.precisions import precision_of
from tb_bottleneck.measure import Measure, Missing, text_measure
from tb_bottleneck.measures.trace.window import window_share
from tb_bottleneck.order_statistics import distinct_rows, heaviest_value
from tb_bottleneck.regime import Regime
from tb_bottleneck.roofline.operand_precision import has_double_operand
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS
from tb_bottleneck.trace.kernel_names import cut, short
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Bools, Ints
from tb_bottleneck.trace.trace import Trace


def double_precision_share(recording: Recording) -> Measure | Missing:
    """Share of the window in kernels, on a CPU run in operators, that work in float64."""
    if not recording.trace.signatures and not recording.on_device:
        return Missing("the types of operators were not recorded; record_shapes=True records them")
    if recording.on_device:
        ops = recording.trace.device_ops.take(double_kernels(recording))
        spans = union(ops.start, ops.end)
    else:
        spans = double_time(recording)
    return window_share(recording, spans.starts, spans.ends)


def costliest_in_double(recording: Recording) -> Measure | Missing:
    """The kernel, on a CPU run the operator, that works longest in float64, by name; untrusted text."""
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
    """Returns the mask of the main thread's operators (rows of `main_operators`) with a float64 tensor."""
    return _with_double_operand(recording.trace, recording.main_operators.rows)


@memoized
def double_time(recording: Recording) -> Spans:
    """Returns the time in which a CPU run works in float64."""
    operators, spans = recording.main_operators, recording.owned_spans
    rows = double_operators(recording)[operators.work_of]
    worked = union(operators.work_start[rows], operators.work_end[rows])
    return intersect(worked, merge(spans.of(Regime.COMPUTE), spans.of(Regime.MEMORY)))


@memoized
def double_kernels(recording: Recording) -> Bools:
    """Returns the mask of the device's operations that are kernels in float64, by their operators or their names."""
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
    """Returns the mask of the events with a float64 tensor. Each recorded signature is decoded once."""
    signatures = trace.events.signature[rows]
    first, which = distinct_rows(signatures)
    operands = [operands_of(trace.signatures[number]) if number else None for number in signatures[first].tolist()]
    found = np.array([each is not None and has_double_operand(each) for each in operands], np.bool_)
    return np.asarray(found[which], np.bool_)
