"""Measures of attention as single operators, convolutions in 32 bits, and work in float64."""

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import EMPTY, Spans, intersect, merge, union
from tb_bottleneck.base.measure import Measure, Missing, Record, text_measure
from tb_bottleneck.base.order_statistics import distinct_rows, heaviest_value
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.knowledge.catalogue import precision_of
from tb_bottleneck.measures.trace.kernel_efficiency import MOSTLY
from tb_bottleneck.measures.trace.window import device_work, host_step_of, in_host_steps, window_share, with_example
from tb_bottleneck.roofline.device_peaks import has_matrix_units
from tb_bottleneck.roofline.matmul import flops
from tb_bottleneck.roofline.operator_args import first_tensor_type, has_double_operand
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work
from tb_bottleneck.trace.forward_links import forward_links, linked_forward
from tb_bottleneck.trace.kernel_names import cut, name_matches, short
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Bools, Floats, Ints, Rows, by_thread
from tb_bottleneck.trace.trace import Trace

_PRODUCTS, _SOFTMAX = frozenset({"aten::bmm", "aten::baddbmm"}), "aten::_softmax"
# They copy their operands before the product if these are not contiguous, as heads after a transposition are.
_AROUND_PRODUCTS = frozenset({"aten::matmul", "aten::einsum"})
# Operators from the first product to the second, nested ones included: scaling, mask, softmax, dropout and reshaping
# take up to about 30 in public recordings.
MAX_OPERATORS_BETWEEN = 60


def attention_passes(recording: Recording) -> Measure | Missing:
    """Sequences of matrix multiplication, softmax and matrix multiplication per step: attention as single operators."""
    spans = attention_time(recording)
    return with_example(len(spans) / len(recording.steps), "count", "step", spans.starts, spans.ends)


def unfused_attention_share(recording: Recording) -> Measure | Missing:
    """Share of the window in streaming kernels between the two matrix multiplications of attention (forward pass).

    On a CPU run: in operators other than these multiplications. Attention as single operators writes the scores of all
    pairs of tokens to memory, and each operator in between reads the scores again. Fused attention
    (torch.nn.functional.scaled_dot_product_attention) keeps the scores on the chip.
    """
    spans = attention_time(recording)
    if not recording.on_device:
        return _on_the_cpu(recording, spans)
    ops = device_work(recording, Work.STREAMING)
    ops = ops.take(spans.contains(ops.issued(recording.trace.calls)))
    return window_share(recording, ops.start, ops.end)


def _on_the_cpu(recording: Recording, spans: Spans) -> Measure:
    trace, events = recording.trace, recording.trace.events
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[spans.contains(events.start[rows])]
    rows = rows[events.thread[rows] == recording.host.main_thread]
    own = nest(events.start[rows], events.end[rows]).self_times()
    own = own[~name_matches(trace.names, events.name[rows], _PRODUCTS.__contains__)]
    return Measure(float(own.sum()) / recording.account.window, "share", "window", len(spans))


@memoized
def attention_time(recording: Recording) -> Spans:
    """Returns host time from the first to the end of the second matrix multiplication of attention as operators.

    `aten::matmul` and `aten::einsum` around these multiplications belong to it: a fused kernel needs no copies of
    their operands.
    """
    trace, events = recording.trace, recording.trace.events
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[in_host_steps(recording, events.start[rows])]
    if not len(rows):
        return EMPTY
    rows = np.concatenate(list(by_thread(rows, events.thread).values()))
    product = name_matches(trace.names, events.name[rows], _PRODUCTS.__contains__)
    softmax = name_matches(trace.names, events.name[rows], _SOFTMAX.__eq__)
    at = np.flatnonzero(product | softmax)
    first, middle, last = at[:-2], at[1:-1], at[2:]
    found = product[first] & softmax[middle] & product[last] & (last - first <= MAX_OPERATORS_BETWEEN)
    around = np.flatnonzero(name_matches(trace.names, events.name[rows], _AROUND_PRODUCTS.__contains__))
    begin, end = (rows[_enclosing(trace, rows, around, each[found])] for each in (first, last))
    same = events.thread[begin] == events.thread[end]
    same &= host_step_of(recording, events.start[begin]) == host_step_of(recording, events.start[end])
    return union(events.start[begin[same]], events.end[end[same]])


def _enclosing(trace: Trace, rows: Rows, around: Ints, inner: Ints) -> Ints:
    """Returns for each position `inner` in `rows` the operator of `around` that contains it, or the position itself."""
    if not len(around):
        return inner
    events = trace.events
    before = around[np.maximum(np.searchsorted(around, inner, "right") - 1, 0)]
    outer, own = rows[before], rows[inner]
    contains = (before <= inner) & (events.thread[outer] == events.thread[own]) & (events.end[outer] >= events.end[own])
    return np.where(contains, before, inner)


_LINEAR = frozenset({"aten::mm", "aten::addmm"})
_SINGLE = "float"
FUSED_BACKWARD = 5 / 4
"""Operations of a fused backward pass / of single operators: the fused pass recomputes scores (arXiv 2205.14135)."""


class AttentionWork(Record, frozen=True, eq=False):
    """The operators of attention that is not fused, in the forward and the backward pass."""

    spans: Spans
    """The host's time in these operators, without nested operators."""

    kernels: Bools
    """Mask of the device operations that these operators launch."""

    flops: float
    """Floating-point operations of the multiplications of fused attention."""

    linear_rate: float
    """Operations per ns that the linear layers of this recording reach."""

    in_single_precision: bool
    """True if most of these multiplications have 32-bit operands."""


@memoized
def attention_work(recording: Recording) -> AttentionWork | None:
    """Returns the work of unfused attention; None if there is none, or shapes do not give the linear layers' rate."""
    trace, events = recording.trace, recording.trace.events
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[in_host_steps(recording, events.start[rows])]
    forward_time = attention_time(recording)
    if not len(rows) or not len(forward_time):
        return None
    _, forward = linked_forward(trace, forward_links(trace), events.thread[rows], events.start[rows])
    backward = (forward >= 0) & forward_time.contains(events.start[np.maximum(forward, 0)])
    inside = backward | forward_time.contains(events.start[rows])
    begin, end, owner = _self_time(recording, rows)
    kernels_of = _launching_rows(recording)
    taken = _time_of(rows, begin, end, owner, kernels_of, recording)
    linear, product = (
        name_matches(trace.names, events.name[rows], names.__contains__) for names in (_LINEAR, _PRODUCTS)
    )
    rate = _flops(trace, rows[linear]) / max(taken[linear].sum(), 1.0)
    if not rate:
        return None
    fused = _flops(trace, rows[product & inside & ~backward])
    wide = _flops(trace, rows[product & inside], _SINGLE)
    is_wide = wide > _flops(trace, rows[product & inside]) / 2
    fused += FUSED_BACKWARD * _flops(trace, rows[product & backward])
    chosen = inside[owner]
    spans = union(begin[chosen], end[chosen])
    return AttentionWork(spans, np.isin(kernels_of, rows[inside]), fused, rate, is_wide)


def _self_time(recording: Recording, rows: Rows) -> tuple[Ints, Ints, Ints]:
    """Returns starts and ends of the times in which operators run themselves, and their positions in `rows`."""
    events = recording.trace.events
    parts = []
    for own in by_thread(np.arange(len(rows)), events.thread[rows]).values():
        nesting = nest(events.start[rows[own]], events.end[rows[own]])
        begin, end, owner = nesting.self_spans(np.ones(len(own), np.bool_))
        parts.append((begin, end, own[owner]))
    begin, end, owner = (np.concatenate(column) for column in zip(*parts, strict=True))
    return begin, end, owner


def _launching_rows(recording: Recording) -> Ints:
    """Returns the operator that launches each operation of the device, as a row of the events; -1 for none."""
    trace, ops = recording.trace, recording.trace.device_ops
    found = np.full(len(ops), -1, np.int64)
    if len(trace.calls):
        called, operator = trace.calling_operators
        known = np.flatnonzero(ops.launched)
        known = known[called[ops.call[known]]]
        found[known] = operator[ops.call[known]]
    return found


def _time_of(rows: Rows, begin: Ints, end: Ints, owner: Ints, launching: Ints, recording: Recording) -> Floats:
    """Returns the time of each operator's work in ns: the time of its kernels or, on a CPU run, its own time."""
    if not recording.on_device:
        return np.asarray(np.bincount(owner, weights=end - begin, minlength=len(rows)), np.float64)
    ops = recording.trace.device_ops
    at = np.minimum(np.searchsorted(rows, launching), len(rows) - 1)
    known = rows[at] == launching
    length = (ops.end - ops.start)[known]
    return np.asarray(np.bincount(at[known], weights=length, minlength=len(rows)), np.float64)


def _flops(trace: Trace, rows: Rows, operand: str = "") -> float:
    """Returns the floating-point operations of the contractions in the event rows `rows` with recorded shapes.

    With `operand`, only of those whose first tensor has this type.
    """
    names, counts = np.unique(
        np.stack((trace.events.name[rows], trace.events.signature[rows])), axis=1, return_counts=True
    )
    total = 0.0
    for (name, signature), count in zip(names.T.tolist(), counts.tolist(), strict=True):
        operands = operands_of(trace.signatures[signature]) if signature else None
        if operands is not None and operand in ("", first_tensor_type(operands)):
            total += count * (flops(trace.names[name], operands.dims, operands.concrete) or 0)
    return total


_WIDE_TYPES = ("fp32", "tf32")


@memoized
def convolution_share(recording: Recording) -> float:
    """Returns the share of the contractions' time that is in convolutions in fp32 or tf32."""
    ops = recording.trace.device_ops
    products = ops.work == Work.CONTRACTION
    wide = name_matches(recording.trace.names, ops.name, _is_wide)
    length = ops.end - ops.start
    whole = int(length[products].sum())
    return float(length[products & wide & _convolves(recording)].sum() / whole) if whole else 0.0


@memoized
def between_products(recording: Recording) -> Bools:
    """Returns a mask of the operations other than contractions that autocast may run in half precision. Operations of
    the optimizer, which updates parameters in their own type, are excluded."""
    ops = recording.trace.device_ops
    updates = recording.optimizer_time.contains(ops.issued(recording.trace.calls))
    return np.asarray(np.isin(ops.work, (Work.STREAMING, Work.UNKNOWN)) & ~updates, np.bool_)


def wide_activations(recording: Recording) -> Measure | Missing:
    """Share of the window in operations other than contractions, in a network of convolutions in 32 bits.

    Missing if most contractions are not convolutions in 32 bits, or if the device is not known to have matrix units.

    The activations of such a network are twice as large as in half precision.
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
    """Returns the mask of the main thread's operators (rows of `main_operators`) with a float64 tensor."""
    return _with_double_operand(recording.trace, recording.main_operators.rows)


@memoized
def double_time(recording: Recording) -> Spans:
    """Returns the time in which operators of a CPU run compute in float64."""
    operators, spans = recording.main_operators, recording.owned_spans
    rows = double_operators(recording)[operators.work_of]
    worked = union(operators.work_start[rows], operators.work_end[rows])
    return intersect(worked, merge(spans.of(Regime.COMPUTE), spans.of(Regime.MEMORY)))


@memoized
def double_kernels(recording: Recording) -> Bools:
    """Returns the mask of the device's operations that are kernels in float64, by their operators or their names.

    An operator works in float64 if it has a float64 tensor.
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
    """Returns the mask of the events with a float64 tensor. Each recorded signature is decoded once."""
    signatures = trace.events.signature[rows]
    first, which = distinct_rows(signatures)
    operands = [operands_of(trace.signatures[number]) if number else None for number in signatures[first].tolist()]
    found = np.array([each is not None and has_double_operand(each) for each in operands], np.bool_)
    return np.asarray(found[which], np.bool_)
