"""The critical path of a job: the work and the transfers whose times sum to the length of the job."""

import numpy as np

from tb_bottleneck.jobs.replay.job_graph import JobGraph
from tb_bottleneck.jobs.replay.sweep import Result
from tb_bottleneck.trace.table import Bools, Floats

# Sums of some thousand times of which each is rounded to a nanosecond.
_TOLERANCE_NS = 10.0


def critical_work(graph: JobGraph, result: Result, own: Floats, wire: Floats) -> Bools:
    """Returns a mask of the points: True if the work before the point is on the critical path of the simulated job.

    `own` has the own times per point and kind, `wire` the wire times per row, in ns. The path is followed back from the
    rank that ends last. At each node, it follows the edge that was done last.
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
