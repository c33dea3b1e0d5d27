"""Measures of attention that runs as separate operators: matrix multiplication, softmax, matrix multiplication."""

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import EMPTY, Spans, union
from tb_bottleneck.base.measure import Measure, Missing, Record
from tb_bottleneck.measures.trace.window_rows import (
    device_work,
    host_step_of,
    in_host_steps,
    window_share,
    with_example,
)
from tb_bottleneck.roofline.matmul import flops, product_of
from tb_bottleneck.roofline.operator_args import first_tensor_type
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.forward_links import forward_links, linked_forward
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Bools, Ints, Rows, by_thread
from tb_bottleneck.trace.trace import Trace

_PRODUCTS, _SOFTMAX = frozenset({"aten::bmm", "aten::baddbmm"}), "aten::_softmax"
# Before the product, these operators copy operands that are not contiguous, such as attention heads after a
# transposition.
_AROUND_PRODUCTS = frozenset({"aten::matmul", "aten::einsum"})
# Operators from the first product to the second, nested ones included: scaling, mask, softmax, dropout and reshaping
# take up to about 30 in public recordings.
MAX_OPERATORS_BETWEEN = 60


def attention_passes(recording: Recording) -> Measure | Missing:
    """Sequences of matrix multiplication, softmax and matrix multiplication per step: attention computed by separate
    operators (count)."""
    spans = attention_time(recording)
    return with_example(len(spans) / len(recording.steps), "count", "step", spans.starts, spans.ends)


def unfused_attention_share(recording: Recording) -> Measure | Missing:
    """Share of the window in streaming kernels (limited by bandwidth) between the two matrix multiplications of
    attention in the forward pass.

    On a CPU run, the share of the window in operators of attention other than these multiplications.

    Attention computed by separate operators writes the scores of all pairs of tokens to memory, and each operator
    between the multiplications reads the scores again. Fused attention
    (torch.nn.functional.scaled_dot_product_attention) keeps the scores on the chip.
    """
    spans = attention_time(recording)
    if not recording.on_device:
        return _on_the_cpu(recording, spans)
    ops = device_work(recording, Work.STREAMING)
    ops = ops.take(spans.contains(ops.issued(recording.trace.calls)))
    return window_share(recording, ops.start, ops.end)


def _on_the_cpu(recording: Recording, spans: Spans) -> Measure:
    """Returns `unfused_attention_share` of a CPU run. `spans` is the result of `attention_time`."""
    trace, events = recording.trace, recording.trace.events
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[spans.contains(events.start[rows])]
    rows = rows[events.thread[rows] == recording.host.main_thread]
    own = nest(events.start[rows], events.end[rows]).self_times()
    own = own[~name_matches(trace.names, events.name[rows], _PRODUCTS.__contains__)]
    return Measure(float(own.sum()) / recording.account.window, "share", "window", len(spans))


@memoized
def attention_time(recording: Recording) -> Spans:
    """Returns the host's time in attention computed by separate operators: in each pass, from the start of the first
    matrix multiplication to the end of the second one.

    Calls of `aten::matmul` and `aten::einsum` around these multiplications are included, because a fused kernel does
    not need the copies of operands that they make.
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
    """Returns for each element of `inner` the element of `around` whose event contains its event, or the element of
    `inner` itself if there is none. All elements are positions in `rows`, which has event rows."""
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
"""Number of operations of a fused backward pass / number of operations of a backward pass by separate operators. The
fused pass computes the scores again (arXiv 2205.14135)."""


class AttentionWork(Record, frozen=True, eq=False):
    """The operators of attention that is not fused, in the forward and the backward pass of all steps of the window."""

    spans: Spans
    """The host's time in these operators, without nested operators."""

    kernels: Bools
    """Mask of the device operations that these operators launch."""

    flops: float
    """Floating-point operations that the multiplications of fused attention would need."""

    linear_rate: float
    """Operations per ns that the linear layers of this recording reach."""

    queries: int
    """Number of tokens whose scores one multiplication computes, the largest of all multiplications; 0 if not known."""

    in_single_precision: bool
    """True if most operations of the recorded multiplications of attention have 32-bit operands."""


@memoized
def attention_work(recording: Recording) -> AttentionWork | None:
    """Returns the work of unfused attention. Returns None if there is none, or if the rate of the linear layers is not
    known because no shapes were recorded."""
    trace, events = recording.trace, recording.trace.events
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[in_host_steps(recording, events.start[rows])]
    forward_time = attention_time(recording)
    if not len(rows) or not len(forward_time):
        return None
    _, forward = linked_forward(trace, forward_links(trace), events.thread[rows], events.start[rows])
    backward = (forward >= 0) & forward_time.contains(events.start[np.maximum(forward, 0)])
    inside = backward | forward_time.contains(events.start[rows])
    linear, product = (
        name_matches(trace.names, events.name[rows], names.__contains__) for names in (_LINEAR, _PRODUCTS)
    )
    kernels_of = _launching_rows(recording)
    rate = _flops(trace, rows[linear]) / max(_time_of(recording, rows, linear, kernels_of), 1.0)
    if not rate:
        return None
    fused = _flops(trace, rows[product & inside & ~backward])
    wide = _flops(trace, rows[product & inside], _SINGLE)
    is_wide = wide > _flops(trace, rows[product & inside]) / 2
    fused += FUSED_BACKWARD * _flops(trace, rows[product & backward])
    # Operators that these call are among them, too, so the others need not be nested.
    begin, end, _ = _self_time(recording, rows[inside])
    queries = _queries(trace, rows[product & inside & ~backward])
    return AttentionWork(union(begin, end), np.isin(kernels_of, rows[inside]), fused, rate, queries, is_wide)


def _queries(trace: Trace, rows: Rows) -> int:
    """Returns the largest number of rows of the products in the event rows `rows`."""
    names, signatures = trace.events.name[rows], trace.events.signature[rows]
    kinds = zip(*np.unique(np.stack((names, signatures)), axis=1).tolist(), strict=True)
    known = ((trace.names[name], operands_of(trace.signatures[signature])) for name, signature in kinds)
    products = (product_of(name, operands.dims) for name, operands in known if operands is not None)
    return max((product.m for product in products if product is not None), default=0)


def _self_time(recording: Recording, rows: Rows) -> tuple[Ints, Ints, Ints]:
    """Returns three arrays: start and end in ns of each interval in which an operator itself runs, without the
    operators that it calls, and the position of this operator in `rows`, which has event rows."""
    events = recording.trace.events
    parts = []
    for own in by_thread(np.arange(len(rows)), events.thread[rows]).values():
        nesting = nest(events.start[rows[own]], events.end[rows[own]])
        begin, end, owner = nesting.self_spans(np.ones(len(own), np.bool_))
        parts.append((begin, end, own[owner]))
    begin, end, owner = (np.concatenate(column) for column in zip(*parts, strict=True))
    return begin, end, owner


def _launching_rows(recording: Recording) -> Ints:
    """Returns for each operation of the device the event row of the operator that launches it, or -1 if there is
    none."""
    trace, ops = recording.trace, recording.trace.device_ops
    found = np.full(len(ops), -1, np.int64)
    if len(trace.calls):
        called, operator = trace.calling_operators
        known = np.flatnonzero(ops.launched)
        known = known[called[ops.call[known]]]
        found[known] = operator[ops.call[known]]
    return found


def _time_of(recording: Recording, rows: Rows, chosen: Bools, launching: Ints) -> float:
    """Returns the time in ns of the work of the operators `rows[chosen]`: the time of the kernels that they launch or,
    on a CPU run, their own time. `launching` is the result of `_launching_rows`."""
    if not recording.on_device:
        begin, end, owner = _self_time(recording, rows)
        return float((end - begin)[chosen[owner]].sum())
    ops = recording.trace.device_ops
    return float((ops.end - ops.start)[np.isin(launching, rows[chosen])].sum())


def _flops(trace: Trace, rows: Rows, operand: str = "") -> float:
    """Returns the number of floating-point operations of the contractions in the event rows `rows`. Rows without
    recorded shapes count as 0.

    With `operand`, only contractions count whose first tensor has this type, such as "float".
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
