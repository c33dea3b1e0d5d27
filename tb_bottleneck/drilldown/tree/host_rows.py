"""The nesting of all host rows of a trace: what encloses each row, and when each row runs itself."""

import numpy as np

from tb_bottleneck.record import Record
from tb_bottleneck.trace.autograd.forward_links import is_autograd_node
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import innermost, nest
from tb_bottleneck.trace.steps import step_marks
from tb_bottleneck.trace.table import Bools, Ints, by_thread
from tb_bottleneck.trace.trace import Trace

HOST_KINDS = (Kind.CPU_OP, Kind.ANNOTATION, Kind.PYTHON, Kind.CALL)


class OwnTime(Record, frozen=True, eq=False):
    """Sorted, disjoint time spans, in ns, with the row of the events that runs in each without a nested row."""

    begin: Ints
    end: Ints
    row: Ints


NO_TIME = OwnTime(*(np.empty(0, np.int64) for _ in range(3)))


class HostRows(Record, frozen=True, eq=False):
    """`parent` has the enclosing row for each event, or -1; `own` the own time of the rows of each thread."""

    parent: Ints
    own: dict[int, OwnTime]

    def nearest(self, chosen: Bools) -> Ints:
        """Returns the nearest chosen row for each event: itself, or one that encloses it; -1 if there is none."""
        none = len(chosen)
        around = np.where(self.parent >= 0, self.parent, none)
        near = np.append(np.where(chosen, np.arange(none), around), none)
        while True:
            further = near[near]
            if np.array_equal(further, near):
                return np.where(near[:-1] < none, near[:-1], -1)
            near = further


def host_rows_of(trace: Trace, main_thread: int | None) -> HostRows:
    """Returns the nesting, without the marks of the steps. `main_thread` is a row of the trace's threads.

    On a thread of autograd, the outermost rows are enclosed by what the main thread runs meanwhile: it waits in the
    call that started the backward pass.
    """
    events = trace.events
    calls = np.setdiff1d(trace.rows(*HOST_KINDS), step_marks(trace), assume_unique=True)
    rows_of = by_thread(calls, events.thread)
    parent, own = np.full(len(events), -1, np.int64), {}
    for thread, rows in rows_of.items():
        nesting = nest(events.start[rows], events.end[rows])
        nested = np.flatnonzero(nesting.parent != np.arange(len(rows)))
        parent[rows[nested]] = rows[nesting.parent[nested]]
        begin, end, owner = nesting.self_spans(np.ones(len(rows), np.bool_))
        own[thread] = OwnTime(begin, end, rows[owner])
    main = rows_of.get(-1 if main_thread is None else main_thread)
    if main is not None:
        for thread in _autograd_threads(trace):
            outermost = rows_of[thread][parent[rows_of[thread]] < 0]
            inside, row = innermost(events.start[main], events.end[main], events.start[outermost])
            if thread != main_thread:
                parent[outermost[inside]] = main[row[inside]]
    return HostRows(parent, own)


def _autograd_threads(trace: Trace) -> list[int]:
    return list(by_thread(np.flatnonzero(is_autograd_node(trace)), trace.events.thread))
