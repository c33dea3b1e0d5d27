"""Links operators of the backward pass to the forward operators that they belong to.

The engine of autograd runs the backward pass, often on a separate thread, so no Python frame of the program encloses
the backward pass. Operators are linked by sequence number instead: a backward operator has the same number as its
forward operator. The profiler uses this number, too, to draw links (pytorch torch/csrc/profiler/util.cpp; kineto
generateForwardBackwardLinks: if several forward operators have the number, the last one counts).
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
    """Returns the forward and backward operators of `trace` that have sequence numbers, for `linked_forward`."""
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
    """Returns a mask of the events: True for the nodes of the backward pass that the engine of autograd runs.

    torch before 1.10 does not record events of the engine. If there are none, nodes are found by their own names.
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
    """Returns the backward operator that runs on threads[i] at times[i] (ns), and its forward operator, for each i.

    Both results are arrays of event rows, or -1 if there is no operator. The forward operator is the last operator of
    the forward pass with the same sequence number. It is -1 if this operator does not begin before times[i].
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
