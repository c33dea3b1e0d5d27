"""The critical path of a window. The path is followed backwards from the end of the window to its start.

A device operation waits for its launch, for the previous operation on its stream, and possibly for an operation on
another stream. The path goes to the one of these that ends last. Work of the host waits for the previous work of the
host, or, in a synchronising call, for a device operation. The replay simulates the same dependencies (replay/graph).
"""

import numpy as np

from tb_bottleneck.attribution.idle_gaps import USUAL_LATENCY_NS
from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Record
from tb_bottleneck.replay.graph.device_dependencies import LONG_AGO
from tb_bottleneck.replay.graph.graph import HOSTLESS, Graph, graph_of
from tb_bottleneck.trace.table import Ints


class CriticalPath(Record, frozen=True, eq=False):
    """The critical path as sorted, disjoint parts of the window. `begin`, `end` (ns) and `op` have one element per
    part.

    `op` is the device operation on the critical path in this part (a row of `all_device_ops`), or -1 for the host.
    """

    begin: Ints
    end: Ints
    op: Ints


@memoized
def critical_path(recording: Recording) -> CriticalPath:
    """Returns the critical path of the window (the steps that the report is about). Empty for a run on the CPU."""
    if not recording.on_device:
        return CriticalPath(*(np.empty(0, np.int64) for _ in range(3)))
    graph = graph_of(recording)
    begin, op = _followed(recording, graph)
    low, high = recording.steps.begin, recording.steps.end
    end = np.append(begin[1:], high)
    begin, end = np.maximum(begin, low), np.minimum(end, high)
    some = end > begin
    return CriticalPath(begin[some], end[some], op[some])


def _followed(recording: Recording, graph: Graph) -> tuple[Ints, Ints]:
    """Follows the critical path through `graph`. Returns the start of each part of the path in ns, and the device
    operation of each part, or -1 for work of the host. The parts are in order of time."""
    items, ops = graph.items, recording.trace.all_device_ops
    begins: list[int] = []
    path: list[int] = []
    before = _before_on_stream(items.stream)
    drained = _last_ended(items.op, ops.end)
    item, on_device = _last(recording, graph)
    if item < 0:
        return np.array([recording.steps.begin]), np.array([-1])
    start, end = ops.start, ops.end
    for _ in range(2 * len(items)):
        if on_device:
            op = int(items.op[item])
            begins.append(int(start[op]))
            path.append(op)
            if start[op] <= recording.steps.begin:
                break
            launch = int(items.at[item] + items.latency[item]) if items.latency[item] > LONG_AGO else LONG_AGO
            previous, after = int(before[item]), int(items.after[item])
            ready = [
                (launch, item, False),
                (int(end[items.op[previous]] + items.pause[item]) if previous >= 0 else LONG_AGO, previous, True),
                (int(end[items.op[after]] + items.after_lag[item]) if after >= 0 else LONG_AGO, after, True),
            ]
            reached, item, on_device = max(ready, key=lambda each: each[0])
            if reached <= LONG_AGO:
                break
            continue
        begins.append(int(items.at[item]))
        path.append(-1)
        item, on_device = _before_on_host(graph, item, drained, end)
        if item < 0:
            break
        if on_device:  # the host goes on as soon as the awaited operation ends
            begins[-1] = min(begins[-1], int(end[items.op[item]]))
    order = np.argsort(np.array(begins), kind="stable")
    return np.array(begins)[order], np.array(path)[order]


def _last(recording: Recording, graph: Graph) -> tuple[int, bool]:
    """Returns the item of the graph with which the window ends, or -1 if there is none.

    The second value is True if the window ends with the device operation of this item, and False if it ends with work
    of the host.
    """
    items, ops, end = graph.items, recording.trace.all_device_ops, recording.steps.end
    working = np.flatnonzero(items.op >= 0)
    working = working[ops.end[items.op[working]] <= end]
    if len(working):
        last = int(working[np.argmax(ops.end[items.op[working]])])
        if ops.end[items.op[last]] > end - USUAL_LATENCY_NS:
            return last, True
    hosted = np.flatnonzero((items.follows > HOSTLESS) & (items.at < end))
    return (int(hosted[np.argmax(items.at[hosted])]), False) if len(hosted) else (-1, False)


def _before_on_host(graph: Graph, item: int, drained: Ints, end: Ints) -> tuple[int, bool]:
    """Returns the item for which the host's work of `item` waited, or -1 if there is none.

    The second value is True if the host waited for the device operation of the returned item, and False if the host was
    busy with the returned item. `drained` is the result of `_last_ended`; `end` has the end of each operation in ns.
    """
    items = graph.items
    row = int(items.follows[item])
    if row < 0:
        return -1, False
    awaited = int(drained[row]) if items.drains[row] else int(items.waits[row])
    if awaited >= 0 and items.op[awaited] >= 0:
        over = int(end[items.op[awaited]] + items.lag[row])
        if over > int(items.at[row] + items.cost[row]):
            return awaited, True
    return row, False


def _before_on_stream(stream: Ints) -> Ints:
    """Returns for each item of the graph the item with the previous operation on the same stream, or -1.

    `stream` has the stream of each item, or -1 for items without a device operation.
    """
    before = np.full(len(stream), -1, np.int64)
    rows = np.flatnonzero(stream >= 0)
    rows = rows[np.argsort(stream[rows], kind="stable")]
    same = stream[rows[1:]] == stream[rows[:-1]]
    before[rows[1:][same]] = rows[:-1][same]
    return before


def _last_ended(op: Ints, end: Ints) -> Ints:
    """Returns for each item i of the graph the item among items 0 to i whose device operation ends last.

    The result is -1 if none of these items has an operation. `op` has the operation of each item, or -1. `end` has the
    end of each operation in ns.
    """
    ends = np.where(op >= 0, end[op], LONG_AGO)
    latest = np.maximum.accumulate(ends)
    new = np.where(ends == latest, np.arange(len(op)), 0)
    return np.where(latest > LONG_AGO, np.maximum.accumulate(new), -1)
