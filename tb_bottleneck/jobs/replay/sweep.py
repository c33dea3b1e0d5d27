"""Simulates a job: one sweep over its graph in topological order, vectorised over all ranks of a level."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.jobs.replay.job_graph import JobGraph
from tb_bottleneck.trace.table import Floats


@dataclass(frozen=True, eq=False)
class Result:
    """The simulated job: the time of each node, the end of each rank's window, and the length of the job, in ns."""

    node: Floats
    end: Floats
    length: float


def sweep(graph: JobGraph, own: Floats, wire: Floats, tail: Floats) -> Result:
    """Returns the simulated job. `own` has the own times per point and kind, `wire` the wire times per row, and `tail`
    the own time of each rank after its last point, all in ns."""
    work = own.sum(axis=1)
    weight = graph.fixed.copy()
    weight[graph.point >= 0] += work[graph.point[graph.point >= 0]]
    weight[graph.row >= 0] += wire[graph.row[graph.row >= 0]]
    node = _times(graph, weight, work)
    reached = np.where(graph.last_node >= 0, node[np.maximum(graph.last_node, 0)], graph.begin)
    end = reached + tail
    return Result(node, end, float(end.max() - graph.begin.min()))


def _times(graph: JobGraph, weight: Floats, work: Floats) -> Floats:
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
