"""Replays of captured graphs (cudaGraphLaunch, hipGraphLaunch): the device operations of each launch, and the
operations that no graph launches.

A trace does not name graphs. Launches that run the same operations, in any order, count as launches of one graph: the
branches of a graph run in a new order each time.
"""

from collections import defaultdict

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import union
from tb_bottleneck.base.measure import Record
from tb_bottleneck.measures.user_code.places import HostTimes, Place, places_of
from tb_bottleneck.trace.device_ops import DeviceOps
from tb_bottleneck.trace.kernel_names import name_matches, short
from tb_bottleneck.trace.table import Bools, Floats, Ints, Rows

MAX_GRAPHS, MAX_OUTSIDE, MAX_NAME = 10, 5, 80


class ReplayedGraph(Record, frozen=True):
    """All launches of one graph. Times are medians per launch, in ns.

    `operations` is the number of device operations per launch, `launches` the number of launches. `span` is the time
    from the start of the first operation to the end of the last one. `idle_inside` is the device's idle time within
    `span`. `idle_before` is the device's idle time directly before the first operation; None if nothing ran before.
    `call` is the duration of the host's launching call. `place` is the place in the program that launches the graph;
    None if the place is not known.
    """

    operations: int
    launches: int
    span: float  # from the first operation to the last one
    idle_inside: float  # of the device
    idle_before: float | None  # of the device; None if nothing ran before
    call: float  # of the host
    place: Place | None  # of the launches


class OutsideKernel(Record, frozen=True):
    """The device operations with one name that no graph launches. `count` is their number and `ns` their total time, in
    all steps of the window."""

    name: str
    count: int
    ns: float


class GraphReplays(Record, frozen=True):
    """The replays of captured graphs in a window.

    `graphs` has the MAX_GRAPHS graphs with the most time, `outside` the MAX_OUTSIDE names of other operations with the
    most time, longest first. `launches` is the number of all launches, `outside_count` that of all device operations
    outside of graphs, and `outside_ns` the time in ns in which the device runs such operations.
    """

    graphs: tuple[ReplayedGraph, ...]
    launches: int
    outside: tuple[OutsideKernel, ...]
    outside_count: int
    outside_ns: float


def graph_replays(recording: Recording) -> GraphReplays | None:
    """Returns the replays that begin in the window, or None if there are none."""
    trace, steps = recording.trace, recording.steps
    ops, calls = trace.device_ops, trace.calls
    if not len(ops) or not len(calls):
        return None
    is_graph = name_matches(trace.names, calls.name, lambda name: "GraphLaunch" in name)
    replayed: Bools = ops.launched & is_graph[ops.call]
    inside = (ops.start >= steps.begin) & (ops.start < steps.end)
    launches = _launches(ops, np.flatnonzero(replayed), _idle_before(ops))
    launches = [launch for launch in launches if inside[launch.first]]
    if not launches:
        return None
    beside = ops.take(inside & ~replayed)
    return GraphReplays(
        _grouped(recording, launches),
        len(launches),
        _by_name(trace.names, beside),
        len(beside),
        float(union(beside.start, beside.end).total()),
    )


class _Launch(Record, frozen=True):
    """One launch of a graph. `first` is the row of its first device operation, `call` the row of its call, and
    `operations` identifies the set of its operations, and `count` is their number. Times are in ns, as in
    ReplayedGraph."""

    first: int
    call: int
    operations: bytes
    count: int
    span: int
    idle_inside: int
    idle_before: int  # -1 if nothing ran before


def _launches(ops: DeviceOps, rows: Rows, idle_before: Ints) -> list[_Launch]:
    """Returns the launches of graphs. `rows` are the rows in `ops` of the operations that graphs launch. `idle_before`
    is the result of `_idle_before`."""
    if not len(rows):
        return []
    order = rows[np.argsort(ops.call[rows], kind="stable")]
    start, end = ops.start[order], ops.end[order]
    is_first = np.diff(ops.call[order], prepend=-1) != 0
    group, firsts = np.cumsum(is_first) - 1, np.flatnonzero(is_first)
    counts = np.diff(np.append(firsts, len(order))).tolist()
    span = np.maximum.reduceat(end, firsts) - start[firsts]
    busy = np.add.reduceat(end - start, firsts)
    overlaps = ~is_first[1:] & (start[1:] < end[:-1])
    for number in np.unique(group[1:][overlaps]).tolist():  # branches that run side by side
        own = slice(firsts[number], firsts[number] + counts[number])
        busy[number] = union(start[own], end[own]).total()
    names = ops.name[order][np.lexsort((ops.name[order], group))].astype(np.int64)
    keys = (part.tobytes() for part in np.split(names, firsts[1:]))
    heads, idle = order[firsts], (span - busy).tolist()
    columns = (heads.tolist(), ops.call[heads].tolist(), keys, counts, span.tolist(), idle, idle_before[heads].tolist())
    return [_Launch(*values) for values in zip(*columns, strict=True)]


def _idle_before(ops: DeviceOps) -> Ints:
    """Returns for each of `ops` how long (ns) the device was idle directly before it; -1 for the first operation."""
    ended = np.maximum.accumulate(ops.end)
    return np.append(-1, np.maximum(ops.start[1:] - ended[:-1], 0)).astype(np.int64)


def _grouped(recording: Recording, launches: list[_Launch]) -> tuple[ReplayedGraph, ...]:
    """Returns one entry per graph, the graph with the longest total time first, at most MAX_GRAPHS."""
    groups: dict[bytes, list[_Launch]] = defaultdict(list)
    for launch in launches:
        groups[launch.operations].append(launch)
    ordered = sorted(groups.values(), key=lambda own: -sum(launch.span for launch in own))
    return tuple(_graph(recording, own) for own in ordered[:MAX_GRAPHS])


def _graph(recording: Recording, own: list[_Launch]) -> ReplayedGraph:
    """Returns the entry of one graph from `own`, the list of its launches."""
    calls = recording.trace.calls.take(np.array([launch.call for launch in own]))
    cost: Floats = np.array([launch.span for launch in own], np.float64)
    places = places_of(recording, HostTimes(thread=calls.thread, time=calls.start, cost=cost))
    before = [launch.idle_before for launch in own if launch.idle_before >= 0]
    return ReplayedGraph(
        own[0].count,
        len(own),
        float(np.median(cost)),
        float(np.median([launch.idle_inside for launch in own])),
        float(np.median(before)) if before else None,
        float(np.median(calls.end - calls.start)),
        next(iter(places), None),
    )


def _by_name(names: tuple[str, ...], ops: DeviceOps) -> tuple[OutsideKernel, ...]:
    """Returns one entry per name of `ops`, the name with the longest total time first, at most MAX_OUTSIDE. `names` are
    the names of the trace."""
    if not len(ops):
        return ()
    distinct, group = np.unique(ops.name, return_inverse=True)
    spent, counts = np.bincount(group, weights=ops.end - ops.start), np.bincount(group)
    longest = np.argsort(-spent, kind="stable")[:MAX_OUTSIDE].tolist()
    return tuple(
        OutsideKernel(short(names[distinct[row]], MAX_NAME), int(counts[row]), float(spent[row])) for row in longest
    )
