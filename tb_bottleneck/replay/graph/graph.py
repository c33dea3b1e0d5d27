"""The dependency graph of a recording, in columns: what has to be over before what, and how much later.

An item is a host row, with a device operation that it launched if it did. In a chain of items

    host:    ...end of the item that it follows --gap--> issue --cost--> end; end >= end of what it waits for + lag
    device:  begin >= issue + latency, end of the stream's last one + pause, end of what it comes after + lag

The gap on the host is kept by what the host did in it (attribution/host_activity.py), so that a scenario can
take a part of it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity, HostTimeline
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import Spans
from tb_bottleneck.replay.graph.device_dependencies import LONG_AGO, DeviceDependencies, find_device_dependencies
from tb_bottleneck.replay.graph.host_rows import NONE, HostRows, host_rows
from tb_bottleneck.replay.graph.item_order import ItemOrder, order_items
from tb_bottleneck.replay.graph.wait_targets import WaitTargets, find_wait_targets
from tb_bottleneck.trace.device_ops import DeviceOps
from tb_bottleneck.trace.steps import Steps
from tb_bottleneck.trace.table import Bools, Ints, Table, column
from tb_bottleneck.trace.trace import Trace

HOSTLESS = -2  # in `follows`: a device operation whose launch is not known, or came earlier


@dataclass(frozen=True, eq=False)
class Items(Table):
    """In an order in which everything that an item depends on comes before it."""

    follows: Ints = column("row of items", "whose end on the host it follows; -1 for the begin, HOSTLESS for none")
    gap: Ints = column(
        "ns by Activity", "shape (items, Activity): host time from there to the issue, by what the host did"
    )
    cost: Ints = column("ns", "host time from the issue to the return, if it need not wait")
    waits: Ints = column("row of items", "whose operation must be over before the host goes on; -1 for none")
    drains: Bools = column("flag", "whether all streams must be empty before the host goes on")
    lag: Ints = column("ns", "from there to the return")
    call: Ints = column("row of calls", "the call; -1 for the begin of a step, and for HOSTLESS ones")
    mark: Ints = column("index", "the edge of the steps that this is; -1 for none")
    op: Ints = column("row of device ops", "of all devices; -1 where the row launches nothing")
    stream: Ints = column("index", "of the stream; -1 where there is no operation")
    length: Ints = column("ns", "of the operation")
    pause: Ints = column("ns", "device pause before it")
    latency: Ints = column("ns", "from the issue; LONG_AGO where the issue does not matter")
    after: Ints = column("row of items", "of another stream, whose operation must be over; -1 for none")
    after_lag: Ints = column("ns", "from there")
    frozen: Ints = column("ns", "waiting of an idle device in the item that nothing recorded explains")
    at: Ints = column("ns", "when it was issued, on the recording's clock; the operation's begin for HOSTLESS ones")


@dataclass(frozen=True, eq=False)
class Graph:
    """The items, and what their times are measured by."""

    items: Items
    begin: int  # ns, where the host's first gap begins
    judged: tuple[int, ...]  # indices of the streams of the judged device
    edges: Ints  # ns, the recorded edges of the steps, or of the window where there are none
    host_only: bool = False  # whether the first edge is the host's own


def graph_of(recording: Recording) -> Graph:
    """The graph of a recording whose work ran on a device."""
    trace, steps, host = recording.trace, recording.steps, recording.host
    rows = host_rows(trace, steps, 0 if host.main_thread is None else host.main_thread)
    links, ops = find_device_dependencies(trace), trace.all_device_ops
    begin = int(min(rows.start[0] if len(rows) else steps.begin, ops.start[0], steps.begin))
    places = order_items(trace, rows)
    issue = rows.start.copy()
    np.maximum.at(issue, places.launch[places.linked], links.issue[places.linked])
    stream = np.unique(ops.queue, return_inverse=True)[1]
    return Graph(
        items=_items(
            trace, rows, links, places, _Host(issue, _gaps(rows, issue, host, begin), begin, recording.idle), stream
        ),
        begin=begin,
        judged=tuple(np.unique(stream[ops.device == trace.device_index]).tolist()),
        edges=steps.edges,
        host_only=_first_edge_is_the_hosts(trace, steps),
    )


def _first_edge_is_the_hosts(trace: Trace, steps: Steps) -> bool:
    """Whether the first edge is where the host began, though work from before it still ran: as in short recordings."""
    ops = trace.device_ops
    before = ops.end[ops.issued(trace.calls) < steps.host[0]]
    return bool(len(before)) and int(before.max()) > int(steps.edges[0])


@dataclass(frozen=True, eq=False)
class _Host:
    """Per host row: when it launches, and the activity before it, shape (rows, Activity); and the device idle time."""

    issue: Ints
    gap: Ints
    begin: int
    idle: Spans


def _items(
    trace: Trace, rows: HostRows, links: DeviceDependencies, places: ItemOrder, host: _Host, stream: Ints
) -> Items:
    ops = trace.all_device_ops
    over = np.maximum.accumulate(np.where(places.op >= 0, ops.end[places.op], LONG_AGO))
    waits = find_wait_targets(trace, rows, host.issue, over[places.last_item])
    # A stream's first operation, without its launch, begins when it began.
    adrift = (places.op >= 0) & (places.row < 0) & (places.free[places.op] == LONG_AGO)
    device, stalled = _device_columns(ops, links, places, adrift)
    unknown = np.where(places.last & (places.row >= 0), _of(waits.unknown, places.row), 0)
    begun, returned = ops.start[places.op], _of(rows.end, places.row)
    return Items(
        **_host_columns(ops, rows, waits, places, host, adrift),
        **device,
        stream=np.where(places.op >= 0, stream[places.op], NONE),
        # While the device works for other streams, it is the work that keeps an operation waiting.
        frozen=host.idle.covered(begun - stalled, begun) + host.idle.covered(returned - unknown, returned),
    )


def _host_columns(
    ops: DeviceOps, rows: HostRows, waits: WaitTargets, places: ItemOrder, host: _Host, adrift: Bools
) -> dict[str, Any]:
    """A row's gap comes before its first item, its cost and its wait behind its last one."""
    op, row, hosted = places.op, places.row, places.row >= 0
    numbers, pred = np.arange(len(op)), np.where(hosted, _of(rows.follows, row), NONE)
    follows = np.where(places.first, np.where(pred >= 0, _of(places.last_item, pred), NONE), numbers - 1)
    gap = np.asfortranarray(np.where((places.first & hosted)[:, None], _of(host.gap, row), 0))
    gap[adrift, Activity.OTHER] = ops.start[op[adrift]] - host.begin
    ends_row = places.last & hosted
    awaited, issue = _of(waits.op, row), _of(host.issue, row)
    waits_for = np.where(ends_row & (awaited >= 0), places.item[awaited], NONE)
    lost = waits_for > numbers  # of work that comes later: the clocks do not allow it
    waits_for, drains = np.where(lost, NONE, waits_for), ends_row & _of(waits.whole, row)
    return {
        "follows": np.where(hosted, follows, np.where(adrift, NONE, HOSTLESS)),
        "gap": gap,
        "cost": np.where(ends_row, np.where(lost, _of(rows.end, row) - issue, _of(waits.cost, row)), 0),
        "waits": waits_for,
        "drains": drains,
        "lag": np.where((waits_for >= 0) | drains, _of(waits.lag, row), 0),
        "call": np.where(hosted, _of(rows.call, row), NONE),
        "mark": np.where(ends_row, _of(rows.mark, row), NONE),
        "at": np.where(hosted, issue, ops.start[op]),
    }


def _of(column: Any, row: Ints) -> Any:
    """A column of host rows by row; any value where there is no row (-1), and 0 where the host has no rows at all."""
    return column[row] if len(column) else np.zeros((len(row), *column.shape[1:]), column.dtype)


def _device_columns(
    ops: DeviceOps, links: DeviceDependencies, places: ItemOrder, adrift: Bools
) -> tuple[dict[str, Any], Ints]:
    """The columns of operations, and how long each waited for nothing that was recorded."""
    op, has_op = places.op, places.op >= 0
    after = np.where(has_op & (links.after[op] >= 0), places.item[links.after[op]], NONE)
    lost = after >= np.arange(len(op))  # it was launched later, so it cannot have been what was waited for
    stalled = np.where(lost & (places.free[op] > LONG_AGO), ops.start[op] - places.free[op], 0)
    pause = np.where(adrift, 0, np.where(lost & (stalled != 0), stalled, links.pause[op]))
    latency = np.where(adrift, 0, np.where(places.row >= 0, links.latency[op], LONG_AGO))
    columns = {
        "op": op,
        "length": np.where(has_op, ops.end[op] - ops.start[op], 0),
        "pause": np.where(has_op, pause, 0),
        "latency": np.where(has_op, latency, LONG_AGO),
        "after": np.where(lost, NONE, after),
        "after_lag": np.where(lost | (after < 0), 0, links.lag[op]),
    }
    return columns, stalled + np.where(has_op & ~lost, links.frozen[op], 0)


def _gaps(rows: HostRows, issue: Ints, host: HostTimeline, begin: int) -> Ints:
    """What the host did between the row that each row follows and its issue, in ns."""
    since = np.where(rows.follows >= 0, rows.end[rows.follows], begin)
    # Column by column: what is asked for is sums over a row's few columns, and single columns.
    parts = np.zeros((len(rows), len(Activity)), np.int64, order="F")
    for mine, activities in host.by_thread_group(rows.thread):
        for activity, spans in activities.items():
            parts[mine, activity] = spans.covered(since[mine], issue[mine])
    parts[:, Activity.OTHER] = issue - since - parts[:, : Activity.OTHER].sum(axis=1)
    return parts
