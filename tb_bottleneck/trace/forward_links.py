"""Links operators of the backward pass to the forward operators that they belong to.

Autograd runs the backward pass from its own code, often on a separate thread, so no Python frame encloses the backward
pass. A backward operator has the sequence number of its forward operator. The profiler's own links use this number too
(pytorch torch/csrc/profiler/util.cpp; kineto generateForwardBackwardLinks: if several operators have it, the last one
counts).
"""

import re

import numpy as np

from tb_bottleneck.base.arrays import distinct_values
from tb_bottleneck.base.measure import Record
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import innermost
from tb_bottleneck.trace.table import Bools, Ints, Rows, by_thread
from tb_bottleneck.trace.trace import Trace

BACKWARD = "autograd::engine::evaluate_function"
ACCUMULATION = "torch::autograd::AccumulateGrad"
_BACKWARD_NODE = re.compile(r"^autograd::|Backward\d*$")


class ForwardLinks(Record, frozen=True, eq=False):
    """The operators of a trace that have sequence numbers, as rows of the event table."""

    backward: dict[int, Rows]  # operators of the backward pass, by thread
    threads: Ints  # the keys of `backward`
    forward: Rows  # operators of the forward pass, by sequence number, then by start
    sequence: Ints  # of `forward`


def forward_links(trace: Trace) -> ForwardLinks:
    """Returns what `linked_forward` needs: the forward and backward operators of `trace` with sequence numbers."""
    events = trace.events
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[events.sequence[rows] > 0]
    is_root = is_autograd_node(trace)[rows]
    is_node = name_matches(trace.names, events.name[rows], lambda name: bool(_BACKWARD_NODE.search(name)))
    forward = rows[~is_node]
    forward = forward[np.lexsort((events.start[forward], events.sequence[forward]))]
    backward = by_thread(rows[is_root], events.thread)
    return ForwardLinks(backward, np.array([*backward], np.int64), forward, events.sequence[forward])


def is_autograd_node(trace: Trace) -> Bools:
    """Returns a mask of the events that are nodes of the backward pass, as autograd's engine runs them.

    torch before 1.10 did not record the engine; if no event of the engine exists, nodes are found by their own names.
    """
    rows, names = trace.rows(Kind.CPU_OP), trace.events.name
    root = name_matches(trace.names, names[rows], lambda name: name.startswith(BACKWARD))
    if not root.any():
        root = name_matches(trace.names, names[rows], _is_plain_node)
    mask = np.zeros(len(trace.events), np.bool_)
    mask[rows[root]] = True
    return mask


def _is_plain_node(name: str) -> bool:
    return name == ACCUMULATION or bool(_BACKWARD_NODE.search(name))


def linked_forward(trace: Trace, links: ForwardLinks, threads: Ints, times: Ints) -> tuple[Ints, Ints]:
    """Returns, for each pair of `threads` and `times`, the running backward operator and its forward operator.

    Both are rows of the event table, or -1 if there is none. The forward operator is the last operator with the same
    sequence number; the result is -1 if that operator did not begin before the time. `times` is in ns.
    """
    events = trace.events
    backward, forward = np.full(len(times), -1, np.int64), np.full(len(times), -1, np.int64)
    for thread in np.intersect1d(distinct_values(threads), links.threads, assume_unique=True).tolist():
        own, rows = np.flatnonzero(threads == thread), links.backward[thread]
        running, row = innermost(events.start[rows], events.end[rows], times[own])
        backward[own[running]] = rows[row[running]]
    linked = np.flatnonzero(backward >= 0)
    if not len(linked) or not len(links.forward):
        return backward, forward
    last = np.searchsorted(links.sequence, events.sequence[backward[linked]], side="right") - 1
    found: Bools = last >= 0
    candidate = links.forward[np.maximum(last, 0)]
    found &= events.sequence[candidate] == events.sequence[backward[linked]]
    found &= events.start[candidate] < times[linked]
    forward[linked[found]] = candidate[found]
    return backward, forward
