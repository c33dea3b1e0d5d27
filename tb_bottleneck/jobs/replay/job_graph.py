"""The dependency graph of a job.

The nodes are the points of each rank (jobs/summary/rank_summary.py), the arrival of each communication, and each pair.
A rank works from point to point. A communication arrives when its rank reaches its start, or after the previous
communication on the same stream. A pair begins when its last member arrives. The row of each member ends one wire time
(time of its transfer) after the begin of the pair. A rank that waits for a communication continues after the end of the
communication.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tb_bottleneck.jobs.pairing.clocks import Clocks
from tb_bottleneck.jobs.pairing.job_table import JobTable
from tb_bottleneck.jobs.pairing.pairs import Pairs
from tb_bottleneck.jobs.replay.waits import RankPoints, points_of_job
from tb_bottleneck.trace.table import Bools, Floats, Ints

# A communication that starts this soon after the one before it on its stream was queued behind it: kernels on a stream
# follow each other within some microseconds.
QUEUED_NS = 20_000


@dataclass(frozen=True, eq=False)
class JobGraph:
    """The dependency graph of a job: edges between `nodes` nodes, from `source` to `target` (see the module docstring).

    An edge takes `fixed` ns, plus the own time (time without waiting) before the point `point` (-1 for none), plus the
    wire time (time of the transfer) of the row `row` (-1 for none). `base` is the earliest possible time of each node
    in ns; -inf for no limit. A scenario changes only own times and wire times. Times are on the common clock of the
    job.
    """

    nodes: int
    source: Ints
    target: Ints
    fixed: Floats
    point: Ints
    row: Ints
    base: Floats
    points: RankPoints
    last_node: Ints  # per rank: the node of its last point
    tail: Floats  # per rank: own time after its last point
    begin: Floats  # per rank: begin of its window
    recorded: Floats  # per rank: recorded length of its window

    @cached_property
    def levels(self) -> "Levels":
        """The edges in topological order."""
        return _levels(self.nodes, self.source, self.target)


@dataclass(frozen=True, eq=False)
class Levels:
    """The edges of a graph in topological order. The level of a node is the length of the longest path to it.

    `edges` has the indices of the edges, sorted by the level of their target, then by target. `bounds` has the position
    in `edges` of the first edge of each level from 1, then the number of edges. `left` has the nodes that have no
    level, because they are in a cycle or after a cycle.
    """

    edges: Ints
    bounds: Ints
    left: Ints


class _Edges:
    """Collects the edges of a JobGraph."""

    def __init__(self) -> None:
        self._parts: list[tuple[Ints, Ints, Floats, Ints, Ints]] = []

    def add(
        self,
        source: Ints,
        target: Ints,
        fixed: Floats | None = None,
        point: Ints | None = None,
        row: Ints | None = None,
    ) -> None:
        """Adds the edges from `source` to `target`, which are nodes. An edge takes `fixed` ns, plus the own time (time
        without waiting) before the point `point`, plus the wire time of the row `row`. None adds no time."""
        none = np.full(len(source), -1)
        fixed = np.zeros(len(source)) if fixed is None else fixed
        self._parts.append((source, target, fixed, none if point is None else point, none if row is None else row))

    def columns(self) -> dict[str, Any]:
        """Returns the fields of JobGraph that describe the edges, by name."""
        names = ("source", "target", "fixed", "point", "row")
        return {name: np.concatenate(parts) for name, parts in zip(names, zip(*self._parts, strict=True), strict=True)}


def job_graph(job: JobTable, pairs: Pairs, clocks: Clocks, points: RankPoints | None = None) -> JobGraph:
    """Returns the dependency graph of a job. `points` are the points of the job; None means the result of
    points_of_job.

    The nodes are numbered: first the points, then the arrivals of the rows, then the pairs.
    """
    points, rows = points_of_job(job, pairs) if points is None else points, len(job.rows)
    arrival, meeting = len(points), len(points) + rows
    begin = clocks.aligned(np.arange(len(job.summaries)), np.array([s.facts.begin_ns for s in job.summaries]))
    base = np.full(meeting + pairs.count, -np.inf)
    firsts = np.flatnonzero(points.first)
    base[firsts] = begin[points.rank[firsts]]
    lasts = np.append(firsts[1:], len(points)) - 1 if len(firsts) else firsts
    last_node, reached = np.full(len(begin), -1), np.zeros(len(begin))
    last_node[points.rank[lasts]], reached[points.rank[lasts]] = lasts, points.time[lasts]
    lengths = np.array([s.edges[-1] for s in job.summaries], np.float64)
    return JobGraph(
        nodes=len(base),
        **_edges(job, pairs, points, arrival, meeting).columns(),
        base=base,
        points=points,
        last_node=last_node,
        tail=lengths - reached,
        begin=begin,
        recorded=lengths,
    )


def _edges(job: JobTable, pairs: Pairs, points: RankPoints, arrival: int, meeting: int) -> _Edges:
    """Returns the edges of the graph. Its nodes are the points, then the arrivals of the rows from node `arrival` on,
    then the pairs from node `meeting` on."""
    edges, rows = _Edges(), np.arange(len(job.rows))
    done = np.where(pairs.pair >= 0, meeting + pairs.pair, arrival + rows)  # nodes one wire time before the row ends
    point_of, starting = np.full(len(rows), -1), np.flatnonzero(~points.resumes)
    point_of[points.row[starting]] = starting
    later, waiting = np.flatnonzero(~points.first), np.flatnonzero(points.resumes)
    edges.add(later - 1, later, point=later)
    edges.add(done[points.row[waiting]], waiting, row=points.row[waiting])
    starts = _Starts(job, points, point_of)
    free, behind = np.flatnonzero(starts.queue < 0), np.flatnonzero(starts.queue >= 0)
    after, together = np.flatnonzero(starts.after >= 0), np.flatnonzero(pairs.pair >= 0)
    edges.add(point_of[free], arrival + free, fixed=starts.delay[free])
    edges.add(done[starts.queue[behind]], arrival + behind, fixed=starts.delay[behind], row=starts.queue[behind])
    edges.add(done[starts.after[after]], arrival + after, fixed=starts.delay[after], row=starts.after[after])
    edges.add(arrival + together, meeting + pairs.pair[together])
    return edges


class _Starts:
    """What the start of each row depends on, apart from its rank.

    Each field has one value per row. `queue` is the row behind which the row was queued on its stream. `after` is the
    row that ended last before the start of the row, during the same wait of the rank. Both are -1 if there is no such
    row. `delay` is the time in ns from the end of that row to the start; without such a row, from the time at which the
    rank has done its work before the start.
    """

    def __init__(self, job: JobTable, points: RankPoints, row_point: Ints) -> None:
        rows = job.rows
        count = len(rows)
        self.queue, self.after = np.full(count, -1), np.full(count, -1)
        self.delay = np.zeros(count)
        start = points.time[row_point]
        reached = points.reached[row_point]
        lane = np.concatenate([s.communications.lane for s in job.summaries]) if count else np.zeros(0, np.int64)
        own_end = rows.end - np.repeat([s.facts.begin_ns for s in job.summaries], np.diff(job.first))
        order = np.lexsort((np.arange(count), lane, rows.rank))
        same = (rows.rank[order][1:] == rows.rank[order][:-1]) & (lane[order][1:] == lane[order][:-1])
        before, mine = order[:-1][same], order[1:][same]
        gap = start[mine] - own_end[before]
        queued = (gap >= -1_000) & (gap <= QUEUED_NS)
        self.queue[mine[queued]] = before[queued]
        self.delay[mine[queued]] = np.maximum(gap[queued], 0.0)
        for first, end in zip(job.first[:-1].tolist(), job.first[1:].tolist(), strict=True):
            self._within_waits(np.arange(first, end), start, reached, own_end)

    def _within_waits(self, mine: Ints, start: Floats, reached: Floats, end: Ints) -> None:
        """Sets `after` and `delay` for the rows `mine` of one rank that start while the rank waits.

        `start`, `reached` and `end` have one value (ns since the start of the window) per row of the job: its start,
        the time at which the rank's own work reached it, and its end.
        """
        inside = mine[(start[mine] - reached[mine] > 1_000) & (self.queue[mine] < 0)]
        if not len(inside):
            return
        by_end = mine[np.argsort(end[mine], kind="stable")]
        position = np.searchsorted(end[by_end], start[inside] + 1_000, side="right") - 1
        last = by_end[np.maximum(position, 0)]
        found = (position >= 0) & (end[last] > reached[inside]) & (last != inside)
        self.after[inside[found]] = last[found]
        known = np.where(found, np.maximum(end[last], reached[inside]), reached[inside])
        self.delay[inside] = np.maximum(start[inside] - known, 0.0)


def _levels(nodes: int, source: Ints, target: Ints) -> Levels:
    """Returns the edges from `source` to `target` in topological order, by Kahn's algorithm. `nodes` is the number of
    nodes."""
    by_source = np.argsort(source, kind="stable")
    first = np.searchsorted(source[by_source], np.arange(nodes + 1))
    waiting = np.bincount(target, minlength=nodes)
    level = np.full(nodes, -1)
    ready = np.flatnonzero(waiting == 0)
    number = 0
    while len(ready):
        level[ready] = number
        begins, counts = first[ready], first[ready + 1] - first[ready]
        positions = np.repeat(begins - np.concatenate(([0], np.cumsum(counts)[:-1])), counts) + np.arange(counts.sum())
        reached = target[by_source[positions]]
        np.subtract.at(waiting, reached, 1)
        ready = np.unique(reached[waiting[reached] == 0])
        number += 1
    inside = np.flatnonzero(level[target] >= 0)
    edges = inside[np.lexsort((target[inside], level[target[inside]]))]
    bounds = np.searchsorted(level[target[edges]], np.arange(1, number + 1))
    return Levels(edges, bounds, np.flatnonzero(level < 0))


def cyclic_pairs(graph: JobGraph, pairs: Pairs) -> Bools:
    """Returns a mask of the pairs in a cycle of the graph or after a cycle. Such pairs are wrong, because waits cannot
    form a cycle."""
    meeting = graph.nodes - pairs.count
    left = graph.levels.left
    wrong = np.zeros(pairs.count, np.bool_)
    wrong[left[left >= meeting] - meeting] = True
    return wrong
