"""The dependency graph of a recording, in columns: what must end before what, and how much earlier.

An item is a host row (a call that launches or waits, or the edge of a step), together with the device operation that it
launched, if any. The times of an item follow from those of earlier items:

    issue = end of the previous item on the host + gap
    end   = max(issue + cost, end of the item that it waits for + lag)
    start of the device operation = max(issue + latency,
                                        end of the stream's previous operation + pause,
                                        end of the operation of another stream that it depends on + lag)

The gap on the host is stored by host activity (attribution/host_activity.py), so that a scenario can remove a part of
it.

Orders host rows and device operations as items, so that an item comes after all items that it depends on.

Rows are ordered by start. An operation comes with the row that launched it. A stream keeps its order: if an earlier
operation on the same stream was launched by a later row, the operation comes with this later row, and its own launch no
longer matters. Operations that were launched before the recording come before all rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity, HostTimeline
from tb_bottleneck.attribution.idle_gaps import ActivityTimes, activity_times, times_of
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import distinct_values
from tb_bottleneck.base.intervals import Spans
from tb_bottleneck.base.measure import Record
from tb_bottleneck.replay.graph.device_dependencies import (
    LONG_AGO,
    DeviceDependencies,
    find_device_dependencies,
    stream_free,
)
from tb_bottleneck.replay.graph.host_rows import NONE, HostRows, host_rows, starts_on_the_host
from tb_bottleneck.replay.graph.wait_targets import WaitTargets, find_wait_targets
from tb_bottleneck.trace.device_ops import DeviceOps
from tb_bottleneck.trace.table import Bools, Ints, Table, column, rows_by_key
from tb_bottleneck.trace.trace import Trace

_BARE, _LINKED, _HOSTLESS = range(3)
BEFORE_ALL_ROWS = -1


class ItemOrder(Record, frozen=True, eq=False):
    """The order of the items, and which device operation and which host row each item contains.

    Per operation: the host row that launched it (`launch`, -1 for none), whether it is in an item of that row
    (`linked`), its `item`, and when its stream became `free` (ns). Per item: its operation `op` and its host row `row`
    (-1 for none), and whether it is the `first` or the `last` item of that row. Per host row: its `last_item`.
    """

    launch: Ints
    linked: Bools
    item: Ints
    free: Ints
    op: Ints
    row: Ints
    first: Bools
    last: Bools
    last_item: Ints


def order_items(trace: Trace, rows: HostRows) -> ItemOrder:
    """Combines the device operations of `trace` (all devices) and the host rows `rows` into items, and returns their
    order."""
    ops = trace.all_device_ops
    launch = _launching_rows(trace, rows)
    key = np.where(launch >= 0, launch, np.maximum(np.searchsorted(rows.start, ops.start, side="right") - 1, 0))
    key[ops.left_over()] = BEFORE_ALL_ROWS
    unlaunched = launch < 0
    for on_stream in rows_by_key(ops.queue):
        # An operation without a launch comes directly after its predecessor.
        own = np.where(
            unlaunched[on_stream],
            np.where(np.arange(len(on_stream)) == 0, key[on_stream], BEFORE_ALL_ROWS),
            key[on_stream],
        )
        key[on_stream] = np.maximum.accumulate(own)
    linked = (launch >= 0) & (key == launch)
    launches = np.zeros(len(rows), np.bool_)
    launches[launch[linked]] = True
    bare = np.flatnonzero(~launches)

    keys = np.concatenate((key, bare))
    kinds = np.concatenate((np.where(linked, _LINKED, _HOSTLESS), np.full(len(bare), _BARE)))
    starts = np.concatenate((ops.start, rows.start[bare]))
    order = np.lexsort((starts, kinds, keys))
    op = np.concatenate((np.arange(len(ops)), np.full(len(bare), NONE)))[order]
    row = np.concatenate((np.where(linked, launch, NONE), bare))[order]

    item = np.empty(len(ops), np.int64)
    item[op[op >= 0]] = np.flatnonzero(op >= 0)
    hosted = np.flatnonzero(row >= 0)
    first, last = np.zeros(len(row), np.bool_), np.zeros(len(row), np.bool_)
    first[hosted] = np.diff(row[hosted], prepend=NONE) != 0
    last[hosted] = np.diff(row[hosted], append=NONE) != 0
    last_item = np.full(len(rows), NONE)
    last_item[row[last]] = np.flatnonzero(last)
    return ItemOrder(launch, linked, item, stream_free(ops.queue, ops.start, ops.end), op, row, first, last, last_item)


def _launching_rows(trace: Trace, rows: HostRows) -> Ints:
    """Returns for each device operation the host row that launched it; -1 if the launching call is unknown or has no
    host row."""
    ops = trace.all_device_ops
    row_of = np.append(rows.of_calls(len(trace.calls)), NONE)  # the last value is for operations without a call
    return np.asarray(row_of[np.where(ops.launched, ops.call, len(trace.calls))], np.int64)


HOSTLESS = -2  # in `follows`: a device operation with an unknown or earlier launch


@dataclass(frozen=True, eq=False)
class Items(Table):
    """The items of a graph. An item is a host row with the device operation that it launched, one of the two alone, or
    one of several operations that a host row launched. An item comes after all items that it depends on.
    """

    follows: Ints = column(
        "row of items", "the item that it follows on the host; -1 for the start of the graph, HOSTLESS for none"
    )
    gap: ActivityTimes = column("ns by Activity", "host time from there to the issue, by what the host did")
    cost: Ints = column("ns", "host time from the issue to the return, without waiting")
    waits: Ints = column(
        "row of items", "the item with the operation that must end before the host continues; -1 for none"
    )
    drains: Bools = column("flag", "True if all streams must be empty before the host continues")
    lag: Ints = column("ns", "from the end of that work to the return")
    call: Ints = column("row of calls", "the call; -1 for the start of a step, and for HOSTLESS items")
    mark: Ints = column("index", "the step edge; -1 for none")
    op: Ints = column("row of device ops", "of all devices; -1 if the row launches nothing")
    stream: Ints = column("index", "of the stream; -1 if there is no operation")
    length: Ints = column("ns", "of the operation")
    pause: Ints = column("ns", "device pause before it")
    latency: Ints = column("ns", "from the issue; LONG_AGO if the issue does not matter")
    after: Ints = column(
        "row of items", "the item with an operation of another stream that must have ended; -1 for none"
    )
    after_lag: Ints = column("ns", "from the end of that operation")
    frozen: Ints = column("ns", "device idle time in the item that nothing recorded explains")
    at: Ints = column("ns", "issue time on the recording's clock; the operation's start for HOSTLESS items")


@dataclass(frozen=True, eq=False)
class Graph:
    """A dependency graph: its items, its start, the streams of the judged device, and the recorded step edges."""

    items: Items
    begin: int  # ns, start of the host's first gap
    judged: tuple[int, ...]  # indices of the streams of the judged device
    edges: Ints  # ns, the recorded edges of the steps, or of the window without steps
    host_only: bool = False  # True if the first edge is the host's alone, and not also the end of earlier device work


def graph_of(recording: Recording) -> Graph:
    """Returns the dependency graph of a recording that used a device. For CPU runs, see host_graph_of."""
    trace, steps, host = recording.trace, recording.steps, recording.host
    rows = host_rows(trace, steps, 0 if host.main_thread is None else host.main_thread)
    dependencies, ops = find_device_dependencies(trace), trace.all_device_ops
    begin = int(min(rows.start[0] if len(rows) else steps.begin, ops.start[0], steps.begin))
    order = order_items(trace, rows)
    issue = rows.start.copy()
    np.maximum.at(issue, order.launch[order.linked], dependencies.issue[order.linked])
    stream = np.unique(ops.queue, return_inverse=True)[1]
    return Graph(
        items=_items(
            trace,
            rows,
            dependencies,
            order,
            _Host(issue, _gaps(rows, issue, host, begin), begin, recording.idle),
            stream,
        ),
        begin=begin,
        judged=tuple(distinct_values(stream[ops.device == trace.device_index]).tolist()),
        edges=steps.edges,
        host_only=steps.basis == "whole" and starts_on_the_host(trace, steps),
    )


class _Host(Record, frozen=True, eq=False):
    """Times of the host. `issue` has the launch time (ns) of each host row, `gap` the time by host activity before it.

    `begin` is the start of the graph in ns, `idle` the time spans in which the device was idle.
    """

    issue: Ints
    gap: ActivityTimes
    begin: int
    idle: Spans


def _items(
    trace: Trace, rows: HostRows, dependencies: DeviceDependencies, order: ItemOrder, host: _Host, stream: Ints
) -> Items:
    ops = trace.all_device_ops
    launched_end = np.maximum.accumulate(np.where(order.op >= 0, ops.end[order.op], LONG_AGO))
    waits = find_wait_targets(trace, rows, host.issue, launched_end[order.last_item])
    # If the launch of a stream's first operation is missing, the operation begins at its recorded time.
    adrift = (order.op >= 0) & (order.row < 0) & (order.free[order.op] == LONG_AGO)
    device, stalled = _device_columns(ops, dependencies, order, adrift)
    unknown = np.where(order.last & (order.row >= 0), _of(waits.unknown, order.row), 0)
    begun, returned = ops.start[order.op], _of(rows.end, order.row)
    return Items(
        **_host_columns(ops, rows, waits, order, host, adrift),
        **device,
        stream=np.where(order.op >= 0, stream[order.op], NONE),
        # While the device works for other streams, that work is what keeps an operation waiting.
        frozen=host.idle.covered(begun - stalled, begun) + host.idle.covered(returned - unknown, returned),
    )


def _host_columns(
    ops: DeviceOps, rows: HostRows, waits: WaitTargets, order: ItemOrder, host: _Host, adrift: Bools
) -> dict[str, Any]:
    """Returns the columns of the items that describe the host, by name. If a host row has several items, the first one
    has the gap of the row, the last one its cost and its wait.

    `adrift` is a mask of the items that begin as recorded, because they are the first of their stream and their launch
    is missing.
    """
    op, row, hosted = order.op, order.row, order.row >= 0
    numbers, pred = np.arange(len(op)), np.where(hosted, _of(rows.follows, row), NONE)
    follows = np.where(order.first, np.where(pred >= 0, _of(order.last_item, pred), NONE), numbers - 1)
    gap = times_of([np.where(order.first & hosted, _of(column, row), 0) for column in host.gap.columns])
    if adrift.any():
        other = gap.of(Activity.OTHER).copy()
        other[adrift] = ops.start[op[adrift]] - host.begin
        gap = gap.with_column(Activity.OTHER, other)
    ends_row = order.last & hosted
    awaited, issue = _of(waits.op, row), _of(host.issue, row)
    waits_for = np.where(ends_row & (awaited >= 0), order.item[awaited], NONE)
    lost = waits_for > numbers  # waits for later work, which come only from inexact clocks
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
    """Returns `column[row]`, where `column` has one value per host row. The value is arbitrary for row -1, and 0 if
    there are no host rows."""
    return column[row] if len(column) else np.zeros(len(row), column.dtype)


def _device_columns(
    ops: DeviceOps, dependencies: DeviceDependencies, order: ItemOrder, adrift: Bools
) -> tuple[dict[str, Any], Ints]:
    """Returns the columns of the items that describe the device, by name, and per item how long (ns) its operation
    waited for no recorded reason. `adrift` is as in _host_columns."""
    op, has_op = order.op, order.op >= 0
    after = np.where(has_op & (dependencies.after[op] >= 0), order.item[dependencies.after[op]], NONE)
    lost = after >= np.arange(len(op))  # it was launched later, so it cannot be what the operation waited for
    stalled = np.where(lost & (order.free[op] > LONG_AGO), ops.start[op] - order.free[op], 0)
    pause = np.where(adrift, 0, np.where(lost & (stalled != 0), stalled, dependencies.pause[op]))
    latency = np.where(adrift, 0, np.where(order.row >= 0, dependencies.latency[op], LONG_AGO))
    columns = {
        "op": op,
        "length": np.where(has_op, ops.end[op] - ops.start[op], 0),
        "pause": np.where(has_op, pause, 0),
        "latency": np.where(has_op, latency, LONG_AGO),
        "after": np.where(lost, NONE, after),
        "after_lag": np.where(lost | (after < 0), 0, dependencies.lag[op]),
    }
    return columns, stalled + np.where(has_op & ~lost, dependencies.frozen[op], 0)


def _gaps(rows: HostRows, issue: Ints, host: HostTimeline, begin: int) -> ActivityTimes:
    """Returns per host row the time (ns) by host activity from the end of the row that it follows, or from `begin` if
    there is none, to its issue. `issue` has one time (ns) per row."""
    since = np.where(rows.follows >= 0, rows.end[rows.follows], begin)
    return activity_times(host, rows.thread, since, issue)
