"""Cuts the time of a thread into pieces at the starts and ends of recorded events, and computes the time that the
profiler adds to each piece."""

import re

import numpy as np

from tb_bottleneck.attribution.profiler_time.costs import ProfilerCosts
from tb_bottleneck.base.intervals import Spans, overlapping
from tb_bottleneck.base.measure import Record
from tb_bottleneck.trace.events import Events
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.table import Bools, Floats, Ints, Rows
from tb_bottleneck.trace.trace import Trace

BUILT_IN = "<built-in"
"""Prefix of the names that the profiler gives to functions written in C."""
WAITS = re.compile(r"<built-in (?:function|method) (?:sleep|acquire|wait|wait4|waitpid|poll|select)(?: of .*)?>")
"""Functions of CPython that wait. Cold caches and other programs on the machine do not make them longer."""
OUTSIDE = 0.75
"""Share of the cost of recording an event that lies outside the event itself."""
LEAST_LEFT = 0.05
"""Smallest share of its time that a piece keeps, so that no event vanishes. A choice."""
SLOWEST_PACE = 1 / 1.5
"""Smallest pace: the time of work without the profiler / the time that the same work took while it was recorded. At a
smaller pace, recorded steps are not typical (measures/profiler_overhead.py: ATYPICAL_FROM)."""


_PART = 1 << 16
"""Number of rows that are read at once."""


class HostPieces(Record, frozen=True, eq=False):
    """The time of a thread, cut into pieces at the start and the end of each recorded event. In order of time, in ns.

    A piece belongs to the innermost event that runs. `is_python` is True if this event is a Python function, so that
    Python bytecode runs; in built-in functions and operators, native code runs. `is_wait` is True if the event is a
    built-in function in which the thread waits. Recording the start or the end of an event takes time: three quarters
    of it outside the event, just before the start or just after the end, and one quarter inside (measured with torch
    2.13 on `len`, an empty Python function and `Tensor.add_`).

    `edges` has the shape (3, pieces), with one row each for Python functions, built-in functions and operators. It says
    how many events' recording cost lies in the piece, as a fraction: each start and each end has half of an event's
    cost, of which three quarters lie in the piece outside the event and one quarter in the piece inside.
    """

    begin: Ints
    end: Ints
    is_python: Bools
    is_wait: Bools
    edges: Floats

    def added(self, costs: ProfilerCosts, position: float) -> Floats:
        """Returns the time in ns that the profiler adds to each piece. `position` says how high the costs are.

        At -2, the profiler adds nothing. From -1 to 1, the costs are at this position in their ranges (CostRange.at).
        At 2, the costs are the highest ones, and in addition, the remaining time of each piece, except waits, is
        multiplied by SLOWEST_PACE. From -2 to -1 and from 1 to 2, the result is interpolated.
        """
        length = (self.end - self.begin).astype(np.float64)
        within = min(max(position, -1.0), 1.0)
        per_row = np.array([cost.at(within) for cost in (costs.python_call, costs.c_call, costs.operator)])
        left = length - per_row @ self.edges
        left = np.where(self.is_python, left / costs.slowdown.at(within), left)
        pace = np.where(self.is_wait, 1.0, 1.0 - (1.0 - SLOWEST_PACE) * max(position - 1.0, 0.0))
        part = min(position + 2.0, 1.0)
        added: Floats = part * (length - pace * np.clip(left, LEAST_LEFT * length, length))
        return added

    def take(self, rows: Bools) -> "HostPieces":
        """Returns the pieces for which the mask `rows` (one element per piece) is True."""
        return HostPieces(
            self.begin[rows], self.end[rows], self.is_python[rows], self.is_wait[rows], self.edges[:, rows]
        )


def host_pieces(trace: Trace, thread: int, within: Spans | None = None) -> HostPieces:
    """Returns the pieces of `thread` (a row of the trace's threads), cut to the time `within` if given. A piece that is
    cut contains its part of the cost."""
    events, rows = trace.events, trace.rows(Kind.PYTHON, Kind.CPU_OP, Kind.CALL)
    rows = rows[events.thread[rows] == thread]
    if within is not None:
        rows = _rows_at(events, rows, within)
    nesting = nest(events.start[rows], events.end[rows])
    begin, end, owner = nesting.self_spans(np.ones(len(rows), np.bool_))
    part: tuple[Ints, Ints] | None = None
    if within is not None:
        own, span = overlapping(begin, end, within.starts, within.ends)
        part = np.maximum(begin[own], within.starts[span]), np.minimum(end[own], within.ends[span])
        begin, end, owner = begin[own], end[own], owner[own]
    kind = events.kind[rows]
    is_python = kind == Kind.PYTHON
    is_c = is_python & name_matches(trace.names, events.name[rows], lambda name: name.startswith(BUILT_IN))
    is_function = is_python & ~is_c
    # The edges at the ends of each piece; a piece that its own row begins or ends has the inner side of that edge.
    inner_begin, inner_end = begin == nesting.start[owner], end == nesting.end[owner]
    edges = np.zeros((3, len(begin)))
    for column, of_kind in enumerate((is_function, is_c, kind == Kind.CPU_OP)):
        ends_here = _in_sorted(np.sort(nesting.end[of_kind]), begin)
        begins_here = _in_sorted(nesting.start[of_kind], end)
        own = of_kind[owner].astype(np.float64)
        edges[column] += np.where(inner_begin, own * (1 - OUTSIDE), ends_here * OUTSIDE) / 2
        edges[column] += np.where(inner_end, own * (1 - OUTSIDE), begins_here * OUTSIDE) / 2
    waits = is_c & name_matches(trace.names, events.name[rows], lambda name: WAITS.fullmatch(name) is not None)
    if part is not None:
        edges *= (part[1] - part[0]) / (end - begin)
        begin, end = part
    return HostPieces(begin, end, is_function[owner], waits[owner], edges)


def _rows_at(events: Events, rows: Rows, within: Spans) -> Rows:
    """Returns those of `rows` that determine the pieces in the time `within`: the events that run there, and the events
    that start or end last before and first after each span. `rows` are event rows of one thread in order of time.

    A file may have millions of rows, of which few are needed. They are read in parts, and only these few are nested.
    """
    parts = [rows[first : first + _PART] for first in range(0, len(rows), _PART)]
    before, after = np.full(len(within), np.iinfo(np.int64).min), np.full(len(within), np.iinfo(np.int64).max)
    for part in parts:
        for edges in (events.start[part], np.sort(events.end[part])):
            last = np.searchsorted(edges, within.starts, side="right") - 1
            np.maximum(before, edges[last], out=before, where=last >= 0)
            first = np.searchsorted(edges, within.ends)
            np.minimum(after, np.append(edges, 0)[first], out=after, where=first < len(edges))
    needed = [rows[:0]]
    for part in parts:
        span = np.searchsorted(after, events.start[part])  # the first one that does not end before the event starts
        needed.append(part[events.end[part] >= np.append(before, np.iinfo(np.int64).max)[span]])
    return np.concatenate(needed)


def _in_sorted(times: Ints, wanted: Ints) -> Bools:
    """Returns True for each element of `wanted` that is in the sorted `times`. (np.isin hashes `times`, which takes
    much longer.)"""
    if not len(times):
        return np.zeros(len(wanted), np.bool_)
    found: Bools = times[np.minimum(np.searchsorted(times, wanted), len(times) - 1)] == wanted
    return found
