"""A slow reference simulator: follows the diagram of replay/graph/graph.py item by item, without blocks."""

import numpy as np

from tb_bottleneck.replay.graph.device_dependencies import LONG_AGO
from tb_bottleneck.replay.graph.graph import HOSTLESS, Graph


def slow_edges(graph: Graph) -> list[int]:
    """Returns the edges of the steps in ns. It ignores the limit of the launch queue: use fewer operations."""
    items, gap = graph.items, graph.items.gap.total()
    host, device, free = [0] * len(items), [LONG_AGO] * len(items), {}
    edges: dict[int, int] = {}
    first_begin = None
    for item in range(len(items)):
        follows, stream = int(items.follows[item]), int(items.stream[item])
        before = host[follows] if follows >= 0 else graph.begin
        issue = before + int(gap[item])
        if stream >= 0:
            begin = free.get(stream, LONG_AGO) + int(items.pause[item])
            if items.latency[item] > LONG_AGO:
                begin = max(begin, issue + int(items.latency[item]))
            if items.after[item] >= 0:
                begin = max(begin, device[items.after[item]] + int(items.after_lag[item]))
            device[item] = free[stream] = begin + int(items.length[item])
            if first_begin is None and stream in graph.judged:
                first_begin = begin
        if follows == HOSTLESS:
            continue
        host[item] = issue + int(items.cost[item])
        if items.waits[item] >= 0:
            host[item] = max(host[item], device[items.waits[item]] + int(items.lag[item]))
        elif items.drains[item]:
            host[item] = max(host[item], max(free.values(), default=LONG_AGO) + int(items.lag[item]))
        mark = int(items.mark[item])
        if mark >= 0:
            judged = [free[stream] for stream in graph.judged if stream in free]
            edges[mark] = host[item] if mark == 0 and graph.host_only else max([host[item], *judged])
    if len(edges) > 1:
        return list(np.maximum.accumulate([edges[mark] for mark in sorted(edges)]).tolist())
    assert first_begin is not None
    return [edges.get(0, first_begin), max(free[stream] for stream in graph.judged)]
