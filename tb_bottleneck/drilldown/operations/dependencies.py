"""Answers to two requests: what launched a device operation and what it waited for; and events by name."""

import numpy as np

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.drilldown.inspected_trace import InspectedTrace
from tb_bottleneck.drilldown.tree.host_rows import HostRows
from tb_bottleneck.drilldown.tree.paths import BY, operator_rows, paths_of
from tb_bottleneck.replay.graph.device_dependencies import LONG_AGO, find_device_dependencies, stream_free
from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Ints
from tb_bottleneck.trace.trace import Trace

MAX_FOLLOWERS = 10
MAX_CHAIN = 40
_MAX_NAME_LENGTH = 300
_ROUNDING = 2.0**-51


def dependencies_of(inspected: InspectedTrace, begin: float, track: str) -> pb.Dependencies:
    """Returns the dependencies of the device operation that begins at `begin` (ns) on the stream `track`.

    `track` is the id of a row of the timeline, such as "device 7".

    Raises:
        NotFound: no operation of a device begins at this time on this track.
    """
    trace, ops = inspected.trace, inspected.trace.all_device_ops
    queue = int(track.removeprefix("device ")) if track.removeprefix("device ").isdecimal() else -1
    rows = np.flatnonzero(ops.queue == queue)
    nearest = rows[np.argmin(np.abs(ops.start[rows] - begin))] if len(rows) else None
    # JSON numbers are floats, in which times since 1970 lose some digits.
    if nearest is None or abs(float(ops.start[nearest]) - begin) > 1 + abs(begin) * _ROUNDING:
        raise NotFound("no operation of the device begins at this time on this track")
    op = int(nearest)
    message = pb.Dependencies(
        name=trace.names[ops.name[op]][:_MAX_NAME_LENGTH], bytes=float(ops.bytes[op]), blocks=int(ops.blocks[op])
    )
    if ops.occupancy[op]:
        message.occupancy = (int(ops.occupancy[op]) - 1) / 100
    _add_wait(trace, op, message)
    if ops.launched[op]:
        call = int(trace.rows(Kind.CALL)[ops.call[op]])
        message.launch.CopyFrom(_row(trace, call))
        _add_places(inspected, call, message)
    return message


def _add_wait(trace: Trace, op: int, message: pb.Dependencies) -> None:
    """Adds to `message` what the operation `op` waited for, and the operations that waited for `op`.

    An operation waits for the one of its dependencies that ends last: its launch, its stream or another stream.
    """
    ops, dependencies = trace.all_device_ops, find_device_dependencies(trace)
    free = stream_free(ops.queue, ops.start, ops.end)
    launched = np.where(
        dependencies.latency > LONG_AGO, dependencies.issue + np.maximum(dependencies.latency, 0), LONG_AGO
    )
    after = dependencies.after
    ready = np.stack(
        [
            launched,
            np.where(free > LONG_AGO, free + dependencies.pause, LONG_AGO),
            np.where(after >= 0, ops.end[after] + dependencies.lag, LONG_AGO),
        ]
    )
    reason = np.where(ready.max(axis=0) > LONG_AGO, ready.argmax(axis=0), -1)
    previous = _previous(ops.queue)
    awaited = np.where(reason == 1, previous, np.where(reason == 2, after, -1))
    message.waited_for = ("launch", "stream", "other_stream", "unknown")[int(reason[op])]
    if reason[op] == 0:
        message.awaited.CopyFrom(_row(trace, int(trace.rows(Kind.CALL)[ops.call[op]])))
        message.waited_ns = float(ops.start[op] - dependencies.issue[op])
    elif awaited[op] >= 0:
        message.awaited.CopyFrom(_op(trace, int(awaited[op])))
        message.waited_ns = float(ops.start[op] - ops.end[awaited[op]])
    for follower in np.flatnonzero(awaited == op)[:MAX_FOLLOWERS].tolist():
        message.followers.append(_op(trace, follower))


def _previous(queue: Ints) -> Ints:
    """Returns for each operation the previous operation of the same stream, or -1. `queue` has the stream of each
    operation."""
    order = np.argsort(queue, kind="stable")
    previous = np.full(len(queue), -1, np.int64)
    same = queue[order[1:]] == queue[order[:-1]]
    previous[order[1:][same]] = order[:-1][same]
    return previous


def _add_places(inspected: InspectedTrace, call: int, message: pb.Dependencies) -> None:
    """Adds to `message` the operators, modules, lines and ranges that enclose the launching call `call` (event row)."""
    host, trace = inspected.host_rows, inspected.trace
    message.operators.extend(_chain(trace, host, call))
    if inspected.recording is None:
        return
    for by in BY:
        if by == "operator":
            continue
        paths = paths_of(inspected.recording, host, by)
        parent, label = paths.forest.columns()
        labels, node, names = paths.labels.of(), int(paths.node[call]), []
        while node > 0:
            names.append(labels[int(label[node])][1])
            node = int(parent[node])
        {"module": message.modules, "line": message.lines, "range": message.ranges}[by].extend(reversed(names))


def _chain(trace: Trace, host: HostRows, row: int) -> list[str]:
    """Returns the names of the operators that enclose the event `row`, outermost first."""
    is_operator, chain = operator_rows(trace), list[str]()
    while row >= 0 and len(chain) < MAX_CHAIN:
        if is_operator[row]:
            chain.append(trace.names[trace.events.name[row]][:_MAX_NAME_LENGTH])
        row = int(host.parent[row])
    return chain[::-1]


def _row(trace: Trace, row: int) -> pb.TimelineRow:
    events = trace.events
    name = trace.names[events.name[row]][:_MAX_NAME_LENGTH]
    return pb.TimelineRow(name=name, begin_ns=float(events.start[row]), end_ns=float(events.end[row]))


def _op(trace: Trace, op: int) -> pb.TimelineRow:
    ops = trace.all_device_ops
    name = trace.names[ops.name[op]][:_MAX_NAME_LENGTH]
    return pb.TimelineRow(name=name, begin_ns=float(ops.start[op]), end_ns=float(ops.end[op]))


MAX_FOUND = 1_000


def add_found(inspected: InspectedTrace, text: str, answer: pb.FindAnswer) -> None:
    """Adds to `answer` the events of the timeline whose names contain `text`, ignoring case.

    Adds the first MAX_FOUND of these events, and the number and the total time of all of them.
    """
    wanted, parts = text.lower(), []
    for number, lane in enumerate(inspected.lanes.rows):
        named = np.flatnonzero(lane.name >= 0)
        occurring = np.unique(lane.name[named], return_counts=True)[0].tolist()
        matching = [name for name in occurring if wanted in lane.names[name].lower()]
        rows = named[np.isin(lane.name[named], matching)]
        parts.append(np.stack([lane.start[rows], lane.end[rows], lane.name[rows], np.full(len(rows), number)], axis=1))
    found = np.concatenate(parts) if parts else np.empty((0, 4), np.int64)
    answer.count = len(found)
    answer.total_ns = float((found[:, 1] - found[:, 0]).sum())
    for begin, end, name, number in found[np.argsort(found[:, 0], kind="stable")[:MAX_FOUND]].tolist():
        lane = inspected.lanes.rows[number]
        answer.rows.add(name=lane.names[name][:_MAX_NAME_LENGTH], track=lane.track, begin_ns=begin, end_ns=end)
