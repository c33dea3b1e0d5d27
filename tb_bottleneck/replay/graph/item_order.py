"""Orders host rows and device operations as items, so that an item comes after all items that it depends on.

Rows are ordered by start. An operation comes with the row that launched it. A stream keeps its order: if an earlier
operation on the same stream was launched by a later row, the operation comes with this later row, and its own launch no
longer matters. Operations that were launched before the recording come before all rows.
"""

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.replay.graph.device_dependencies import stream_free
from tb_bottleneck.replay.graph.host_rows import NONE, HostRows
from tb_bottleneck.trace.table import Bools, Ints, rows_by_key
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
