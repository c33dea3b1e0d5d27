"""Simulates a job: one sweep over its graph in topological order, vectorised over all ranks of a level.

The critical path of a job is the work and the transfers whose times sum to its length.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.jobs.replay.job_graph import JobGraph
from tb_bottleneck.trace.table import Bools, Floats


@dataclass(frozen=True, eq=False)
class Result:
    """The times of a simulated job in ns.

    `node` has the time of each node of the graph, `end` the end of each rank's window, both on the common clock.
    `length` is the time from the start of the first window to the end of the last window.
    """

    node: Floats
    end: Floats
    length: float


def sweep(graph: JobGraph, own: Floats, wire: Floats, tail: Floats) -> Result:
    """Simulates a job. `own` has the own times (time without waiting) before the points, of shape (points, kinds);
    `wire` has the wire time (time of the transfer) of each row, `tail` the own time of each rank after its last point.
    All are in ns."""
    work = own.sum(axis=1)
    weight = graph.fixed.copy()
    weight[graph.point >= 0] += work[graph.point[graph.point >= 0]]
    weight[graph.row >= 0] += wire[graph.row[graph.row >= 0]]
    node = _times(graph, weight, work)
    reached = np.where(graph.last_node >= 0, node[np.maximum(graph.last_node, 0)], graph.begin)
    end = reached + tail
    return Result(node, end, float(end.max() - graph.begin.min()))


def _times(graph: JobGraph, weight: Floats, work: Floats) -> Floats:
    """Returns when each node of the graph is reached, in ns. `weight` has the duration of each edge, `work` that of
    the work before each point, both in ns."""
    levels = graph.levels
    weight, source, target = weight[levels.edges], graph.source[levels.edges], graph.target[levels.edges]
    node = graph.base.copy()
    first = np.flatnonzero(graph.points.first)
    node[first] += work[first]
    for begin, end in zip(levels.bounds[:-1].tolist(), levels.bounds[1:].tolist(), strict=True):
        times, goals = node[source[begin:end]] + weight[begin:end], target[begin:end]
        starts = np.flatnonzero(np.diff(goals, prepend=-1))
        node[goals[starts]] = np.maximum(node[goals[starts]], np.maximum.reduceat(times, starts))
    return node


# Largest difference between two times that count as equal. They are sums of some thousand times, each rounded to a
# nanosecond.
_TOLERANCE_NS = 10.0


def critical_work(graph: JobGraph, result: Result, own: Floats, wire: Floats) -> Bools:
    """Returns a mask of the points: True if the work before the point is on the critical path of the simulated job.

    `own` and `wire` are as in sweep. The path is followed backwards from the rank that ends last. At each node, it
    continues along the edge that ends last.
    """
    work = own.sum(axis=1)
    weight = graph.fixed.copy()
    weight[graph.point >= 0] += work[graph.point[graph.point >= 0]]
    weight[graph.row >= 0] += wire[graph.row[graph.row >= 0]]
    by_target = np.argsort(graph.target, kind="stable")
    first = np.searchsorted(graph.target[by_target], np.arange(graph.nodes + 1))
    found = np.zeros(len(graph.points), np.bool_)
    node = int(graph.last_node[np.argmax(result.end)])
    for _ in range(graph.nodes):
        edges = by_target[first[node] : first[node + 1]] if node >= 0 else np.empty(0, np.intp)
        reached = result.node[graph.source[edges]] + weight[edges]
        if not len(edges) or reached.max() < result.node[node] - _TOLERANCE_NS:
            break  # the begin of a window, or of a collective that waited for a rank without a recording
        edge = edges[int(np.argmax(reached))]
        if graph.point[edge] >= 0:
            found[graph.point[edge]] = True
        node = int(graph.source[edge])
    return found
