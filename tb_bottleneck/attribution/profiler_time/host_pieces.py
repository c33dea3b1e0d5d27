"""The pieces of the main thread between two recorded events, and what the profiler adds to each.

A piece belongs to the innermost row that runs: Python bytecode runs in a Python function, native code in a built-in
function or an operator. Recording the begin or the end of a row takes time at that place: three quarters of it before
the begin and after the end, where another row is the innermost one, and a quarter inside (measured with torch 2.13 on
`len`, an empty Python function and `Tensor.add_`).
"""

import numpy as np

from tb_bottleneck.attribution.profiler_time.costs import ProfilerCosts
from tb_bottleneck.record import Record
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.table import Bools, Floats, Ints
from tb_bottleneck.trace.trace import Trace

BUILT_IN = "<built-in"
"""How the profiler begins the names of functions that are written in C."""
OUTSIDE = 0.75
"""Part of the cost of recording a row that is not in the row itself."""
LEAST_LEFT = 0.05
"""A piece keeps at least this part of its time: a choice, so that no event vanishes."""
SLOWEST_PACE = 1 / 1.5
"""With a smaller one, the recorded steps are not those of the run (ATYPICAL_FROM in measures/trace)."""


class HostPieces(Record, frozen=True, eq=False):
    """Pieces in order of time, in ns. `edges` has for each kind of recorded row, in the order of EDGES, how many begins
    and ends cost time in each piece, where a row with both counts as 1."""

    begin: Ints
    end: Ints
    is_python: Bools
    edges: Floats

    def added(self, costs: ProfilerCosts, position: float) -> Floats:
        """Returns the time in ns that the profiler adds to each piece, at a position that stands for how much it costs.

        -2: nothing; -1 to 1: the ranges of the costs; 2: the highest costs, and all else takes SLOWEST_PACE of its time
        without the profiler.
        """
        length = (self.end - self.begin).astype(np.float64)
        within = min(max(position, -1.0), 1.0)
        per_row = np.array([cost.at(within) for cost in (costs.python_call, costs.c_call, costs.operator)])
        left = length - per_row @ self.edges
        left = np.where(self.is_python, left / costs.slowdown.at(within), left)
        pace = 1.0 - (1.0 - SLOWEST_PACE) * max(position - 1.0, 0.0)
        part = min(position + 2.0, 1.0)
        added: Floats = part * (length - pace * np.clip(left, LEAST_LEFT * length, length))
        return added

    def take(self, rows: Bools) -> "HostPieces":
        """Returns some of the pieces."""
        return HostPieces(self.begin[rows], self.end[rows], self.is_python[rows], self.edges[:, rows])


def host_pieces(trace: Trace, thread: int) -> HostPieces:
    """Returns the pieces of a thread (a row of the trace's threads)."""
    events, rows = trace.events, trace.rows(Kind.PYTHON, Kind.CPU_OP, Kind.CALL)
    rows = rows[events.thread[rows] == thread]
    kind = events.kind[rows]
    is_python = kind == Kind.PYTHON
    is_c = is_python & name_matches(trace.names, events.name[rows], lambda name: name.startswith(BUILT_IN))
    is_function = is_python & ~is_c
    nesting = nest(events.start[rows], events.end[rows])
    begin, end, owner = nesting.self_spans(np.ones(len(rows), np.bool_))
    # The edges at the ends of each piece; a piece that its own row begins or ends has the inner side of that edge.
    inner_begin, inner_end = begin == nesting.start[owner], end == nesting.end[owner]
    edges = np.zeros((3, len(begin)))
    for column, of_kind in enumerate((is_function, is_c, kind == Kind.CPU_OP)):
        mine = np.flatnonzero(of_kind)
        ends_here = _count(np.sort(nesting.end[mine]), begin)
        begins_here = _count(nesting.start[mine], end)
        own = of_kind[owner].astype(np.float64)
        edges[column] += np.where(inner_begin, own * (1 - OUTSIDE), ends_here * OUTSIDE) / 2
        edges[column] += np.where(inner_end, own * (1 - OUTSIDE), begins_here * OUTSIDE) / 2
    return HostPieces(begin, end, is_function[owner], edges)


def _count(times: Ints, wanted: Ints) -> Ints:
    """Returns how often each wanted time is among the sorted times; at least 1 where it is once or more, at most 1."""
    found = np.searchsorted(times, wanted, side="right") - np.searchsorted(times, wanted, side="left")
    return np.asarray(np.minimum(found, 1), np.int64)
