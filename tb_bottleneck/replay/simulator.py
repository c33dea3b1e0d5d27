"""Simulates a graph, which gives the times of the steps, and checks whether the replay can be trusted."""

from dataclasses import dataclass, replace

import numpy as np

from tb_bottleneck.attribution.idle_gaps import LONGEST_LATENCY_NS
from tb_bottleneck.base.measure import Record
from tb_bottleneck.replay.graph.blocks import Layout, maps_of
from tb_bottleneck.replay.graph.device_dependencies import LONG_AGO, LONGEST_PAUSE_NS
from tb_bottleneck.replay.graph.graph import HOSTLESS, Graph, Items
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.trace.table import Bools, Ints


class ReplayResult(Record, frozen=True, eq=False):
    """The simulated times of a graph, in ns.

    `edges` are the starts of the steps and the end of the last one. `host` and `device` have one time per block: when
    the block ends on the host, and when its operations end on their stream.
    """

    edges: Ints
    host: list[int]
    device: list[int]

    @property
    def window(self) -> int:
        """The simulated time from the start of the first step to the end of the last one, in ns."""
        return int(self.edges[-1] - self.edges[0])


def replay(graph: Graph, layout: Layout, items: Items | None = None) -> ReplayResult:
    """Returns the simulated times of `graph`.

    `layout` has the blocks of `graph`. If `items` are given, they replace the items of the graph. They may have other
    times and fewer dependencies, but no dependencies that the items of `graph` lack.
    """
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
    """Returns the simulated edges of the steps in ns: their starts, and the end of the last one.

    `reached` has the time (ns) of each simulated edge by its number, `device` the end (ns) of each block's operations.
    If the recording has no step marks, the window starts at the only edge of the host or at the first operation of the
    judged device, and ends with the last operation.
    """
    if len(reached) > 1:
        return np.maximum.accumulate(np.array([reached[mark] for mark in sorted(reached)], np.int64))
    ends = [end for stream, end in zip(layout.stream, device, strict=True) if stream in graph.judged]
    first_start = device[layout.block[layout.anchor]] - items.length[layout.anchor]
    return np.array([reached.get(0, first_start), max(ends)], np.int64)


# A prediction cannot be better than the replay it starts from, and the target for predictions is a median error of 5 %.
# Unmodified replays of 29 public traces have errors of at most 0.4 %.
MAX_REPLAY_ERROR = 0.05
# Frozen time (the device's idle time that nothing recorded explains) does not change with any fix. If its share is
# larger than the smallest gain that gets a verdict (10 % of the window, bottlenecks/judge.py), it could hide the effect
# of a fix.
MAX_FROZEN_SHARE = 0.10


@dataclass(frozen=True)
class Check:
    """The result of a test replay of the unmodified recording, which shows whether predictions can be trusted.

    `error` is abs(replayed window / recorded window - 1). `frozen_share` is the share of the window in which the device
    was idle for no recorded reason.
    """

    error: float
    frozen_share: float

    @property
    def trusted(self) -> bool:
        """True if both values are within their limits, so that predictions may be made."""
        return self.error <= MAX_REPLAY_ERROR and self.frozen_share <= MAX_FROZEN_SHARE


def check(graph: Graph, layout: Layout) -> Check:
    """Replays the unmodified `graph` with median delays, and returns how far the result is from the recording.

    Every latency, pause and lag is set to the median of its column. With the recorded values, the replay would be exact
    for any dependencies; with medians, only correct dependencies reproduce the recorded times.
    """
    begin, end = int(graph.edges[0]), int(graph.edges[-1])
    replayed = replay(graph, layout, with_median_delays(graph.items)).window
    inside = (graph.items.at >= begin) & (graph.items.at < end)
    frozen = int(graph.items.frozen[inside].sum())
    return Check(abs(replayed / (end - begin) - 1), min(frozen / (end - begin), 1.0))


def with_median_delays(items: Items) -> Items:
    """Returns the items with latencies, pauses and lags set to the medians of their columns. Latencies above
    LONGEST_LATENCY_NS and pauses above LONGEST_PAUSE_NS stay as recorded, because nothing recorded explains them."""
    has_op = items.stream >= 0
    launched = has_op & (items.latency > LONG_AGO) & (items.latency <= LONGEST_LATENCY_NS)
    waiting, following = (items.waits >= 0) & ~has_op, items.after >= 0
    return replace(
        items,
        latency=_median(items.latency, launched),
        pause=_median(items.pause, has_op & (items.pause <= LONGEST_PAUSE_NS)),
        lag=_median(items.lag, waiting),
        after_lag=_median(items.after_lag, following),
    )


def _median(values: Ints, rows: Bools) -> Ints:
    """Returns `values` with the values of the mask `rows` replaced by their median."""
    return np.where(rows, int(np.median(values[rows])), values) if rows.any() else values
