"""Measures of attention that is written as single operators: a product, a softmax and another product.

The scores of all pairs of tokens are then written to memory and read again by each operator in between. Fused attention
(torch.nn.functional.scaled_dot_product_attention) keeps them on the chip.
"""

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import EMPTY, Spans, union
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.trace.window import device_work, host_step_of, in_host_steps, window_share, with_example
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.table import by_thread

_PRODUCTS, _SOFTMAX = frozenset({"aten::bmm", "aten::baddbmm"}), "aten::_softmax"
# Operators from the first product to the second, nested ones included: scaling, mask, softmax, dropout and reshaping
# take up to about 30 in public recordings.
MAX_OPERATORS_BETWEEN = 60


def attention_passes(recording: Recording) -> Measure | Missing:
    """Product, softmax and product in a row, per step."""
    spans = attention_time(recording)
    return with_example(len(spans) / len(recording.steps), "count", "step", spans.starts, spans.ends)


def unfused_attention_share(recording: Recording) -> Measure | Missing:
    """Share of the window in the work between the two products of attention, in the forward pass.

    On a CPU run, of the operators themselves.
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
    """Returns the host's time from each first product to the end of the second one, where a softmax is between them."""
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
    begin, end = rows[first[found]], rows[last[found]]
    same = events.thread[begin] == events.thread[end]
    same &= host_step_of(recording, events.start[begin]) == host_step_of(recording, events.start[end])
    return union(events.start[begin[same]], events.end[end[same]])
