"""Simulates a graph: one pass over its blocks gives the times of the steps."""

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.replay.graph.blocks import Layout, maps_of
from tb_bottleneck.replay.graph.device_dependencies import LONG_AGO
from tb_bottleneck.replay.graph.graph import HOSTLESS, Graph, Items
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.trace.table import Ints


class ReplayResult(Record, frozen=True, eq=False):
    """Times in ns: the `edges` of the steps, and per block when it ended on the `host` and on its stream (`device`)."""

    edges: Ints
    host: list[int]
    device: list[int]

    @property
    def window(self) -> int:
        """Time from the first edge to the last, in ns."""
        return int(self.edges[-1] - self.edges[0])


def replay(graph: Graph, layout: Layout, items: Items | None = None) -> ReplayResult:
    """Returns the simulated times of `graph`, with the items `items` if given, which must have the same
    dependencies."""
    work = graph.items if items is None else items
    maps = maps_of(work, layout)
    drains, marks = work.drains[layout.last].tolist(), work.mark[layout.last].tolist()
    waits = np.where(work.waits[layout.last] >= 0, layout.waits, NONE).tolist()
    afters = np.where(work.after[layout.first] >= 0, layout.after, NONE).tolist()
    free = [LONG_AGO] * max(layout.streams, 1)
    latest, latest_judged, judged = LONG_AGO, LONG_AGO, frozenset(graph.judged)
    host, device, reached = [0] * len(marks), [LONG_AGO] * len(marks), {}
    columns = zip(
        layout.follows, layout.stream, afters, waits, layout.room, drains, marks,
        maps.advance, maps.busy, maps.reach, maps.after_reach, maps.lag, strict=True,
    )  # fmt: skip
    for block, (follows, stream, after, wait, room, drain, mark, advance, busy, reach, after_reach, lag) in enumerate(
        columns
    ):
        h = host[follows] if follows >= 0 else graph.begin
        if stream >= 0:
            f = free[stream] + busy
            if h + reach > f:
                f = h + reach
            if after >= 0 and device[after] + after_reach > f:
                f = device[after] + after_reach
            free[stream] = device[block] = f
            if f > latest:
                latest = f
            if f > latest_judged and stream in judged:
                latest_judged = f
        if follows == HOSTLESS:
            continue
        h += advance
        if room >= 0 and device[room] > h:
            h = device[room]
        if wait >= 0 and device[wait] + lag > h:
            h = device[wait] + lag
        elif drain:
            h = max(h, latest + lag)
        host[block] = h
        if mark >= 0:
            reached[mark] = h if mark == 0 and graph.host_only else max(h, latest_judged)
    return ReplayResult(_edges(graph, layout, work, reached, device), host, device)


def _edges(graph: Graph, layout: Layout, items: Items, reached: dict[int, int], device: list[int]) -> Ints:
    """Returns the edges of the steps in ns. A window without steps starts at the only edge of the host or at the first
    operation of the device, and ends when the last operation ends."""
    if len(reached) > 1:
        return np.maximum.accumulate(np.array([reached[mark] for mark in sorted(reached)], np.int64))
    ends = [end for stream, end in zip(layout.stream, device, strict=True) if stream in graph.judged]
    first_start = device[layout.block[layout.anchor]] - items.length[layout.anchor]
    return np.array([reached.get(0, first_start), max(ends)], np.int64)
