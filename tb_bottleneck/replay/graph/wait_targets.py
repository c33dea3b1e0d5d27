"""What a call waited for, if it did: the operation that has to be over before the host goes on.

- a copy waits for its own operation where that ran during the call;
- a wait waits for the last work put on the stream before it; which stream is told by what ended last inside the call,
  or by what was launched last where the call found its work done. One for a whole device waits for all of it;
- a free waits for the whole device;
- a launch waits where the queue is full: many operations are ahead of it, and it takes unusually long.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.host_activity import BLOCKING_CALL_NS
from tb_bottleneck.attribution.idle_gaps import RETURN_LAG_NS, SHORTEST_WAIT_NS, USUAL_CALL_NS
from tb_bottleneck.replay.graph.group_rows import rows_by_key
from tb_bottleneck.replay.graph.host_rows import NONE, HostRows, drains, ended_inside
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Bools, Ints, Table, column
from tb_bottleneck.trace.trace import Trace

# How many operations a stream's queue holds: a launch beyond blocks (HolisticTraceAnalysis, constants.py: about 1024).
QUEUE = 1024
# With fewer than these ahead of it, a launch that takes long is held up by something else.
FULL_QUEUE = QUEUE // 2
# A launch that blocks takes at least this; the usual one 3 to 10 us.
BLOCKED_LAUNCH_NS = BLOCKING_CALL_NS


@dataclass(frozen=True, eq=False)
class WaitTargets(Table):
    """One row per host row: what it waits for, and how long it takes when it need not wait."""

    op: Ints = column("row of device ops", "the operation that must be over; -1 for none")
    whole: Bools = column("flag", "whether all work of the devices must be over")
    lag: Ints = column("ns", "from the end of that to the return; negative where the call returns before")
    cost: Ints = column("ns", "the call's own time, from when it does its launching")
    unknown: Ints = column("ns", "time in a wait of which nothing recorded tells what for")


def find_wait_targets(trace: Trace, rows: HostRows, issue: Ints, launched_end: Ints) -> WaitTargets:
    """The waits of the host rows.

    `issue` is when each row did its launching, its begin where it launches nothing; `launched_end` is when all work was
    over that had been launched by then.
    """
    calls, ops = trace.calls, trace.all_device_ops
    if not len(calls):
        none, never = np.full(len(rows), NONE), np.zeros(len(rows), np.bool_)
        return _timed(trace, rows, issue, launched_end, _WaitCandidates(none, never, never, never, never))
    is_call = rows.call >= 0
    role = np.where(is_call, calls.role[rows.call], Role.OTHER)
    length = rows.end - rows.start
    inside, latest = (part[rows.call] for part in ended_inside(trace))
    own = _own_last(trace)[rows.call]
    op, whole = np.full(len(rows), NONE), np.zeros(len(rows), np.bool_)

    shortest = np.where(trace.reads[rows.call], SHORTEST_WAIT_NS, BLOCKING_CALL_NS)
    copied = is_call & (role == Role.COPY) & (own >= 0) & (length > shortest)
    copied &= np.where(own >= 0, ops.start[own], 0) < rows.end
    op[copied] = own[copied]

    waiting = is_call & (role == Role.WAIT)
    blocked = waiting & inside & (length > SHORTEST_WAIT_NS)
    whole |= waiting & _named(trace, rows, "DeviceSynchronize", "CtxSynchronize")
    op[blocked & ~whole] = latest[blocked & ~whole]
    found = waiting & ~blocked & ~whole & _named(trace, rows, "StreamSynchronize")
    op[found] = _last_done(trace, rows.start[found], rows.end[found])
    whole |= is_call & drains(trace)[rows.call]

    full, made_room = _queue_full(trace, rows)
    op[full] = made_room[full]
    return _timed(
        trace,
        rows,
        issue,
        launched_end,
        _WaitCandidates(op, whole, whole | (op >= 0), blocked | copied | full, waiting),
    )


@dataclass(frozen=True, eq=False)
class _WaitCandidates:
    """What was found of each host row: the operation, whether all are meant, and whether it really waited."""

    op: Ints
    whole: Bools
    held: Bools
    binding: Bools
    waiting: Bools


def _timed(trace: Trace, rows: HostRows, issue: Ints, launched_end: Ints, found: _WaitCandidates) -> WaitTargets:
    # Another device may go on beyond a wait that names one: then it waited for less than all.
    whole = found.whole & (launched_end <= rows.end + RETURN_LAG_NS)
    held = found.held & (whole | (found.op >= 0))
    over = np.where(whole, launched_end, trace.all_device_ops.end[found.op] if len(trace.all_device_ops) else 0)
    since = rows.end - over
    binding = found.binding | (whole & (since < rows.end - rows.start))
    # A free has work of its own behind the wait; a call that found its work done took all its time for itself.
    own = np.where(
        whole & ~found.waiting, rows.end - np.maximum(issue, over), np.minimum(USUAL_CALL_NS, rows.end - issue)
    )
    cost = np.maximum(np.where(held & binding, own, rows.end - issue), 0)
    behind = np.where(whole & ~found.waiting, rows.end - rows.start, USUAL_CALL_NS)
    unknown = found.waiting & ~held & (rows.end - rows.start > BLOCKING_CALL_NS)
    return WaitTargets(
        op=np.where(held & ~whole, found.op, NONE),
        whole=whole,
        lag=np.where(held, np.where(binding, since, np.minimum(since, behind)), 0),
        cost=cost,
        unknown=np.where(unknown, rows.end - rows.start - USUAL_CALL_NS, 0),
    )


def _named(trace: Trace, rows: HostRows, *words: str) -> Bools:
    return name_matches(trace.names, trace.calls.name, lambda name: any(word in name for word in words))[rows.call]


def _own_last(trace: Trace) -> Ints:
    """The operation of each call that ends last; -1 where it has none."""
    ops = trace.all_device_ops
    own = np.full(len(trace.calls), NONE)
    rows = np.flatnonzero(ops.launched)
    rows = rows[np.argsort(ops.end[rows], kind="stable")]
    own[ops.call[rows]] = rows
    return own


def _last_done(trace: Trace, start: Ints, end: Ints) -> Ints:
    """The operation launched last before each time, if it was over by the return; -1 where it was not."""
    ops, calls = trace.all_device_ops, trace.calls
    launched = np.flatnonzero(ops.launched)
    if not len(launched):
        return np.full(len(start), NONE)
    begun = calls.start[ops.call[launched]]
    order = np.lexsort((ops.start[launched], begun))
    last = np.searchsorted(begun[order], start, side="left") - 1
    op = launched[order[np.maximum(last, 0)]]
    return np.where((last >= 0) & (ops.end[op] <= end + RETURN_LAG_NS), op, NONE).astype(np.int64)


def _queue_full(trace: Trace, rows: HostRows) -> tuple[Bools, Ints]:
    """Which launches found the queue full, and the operation whose end made room."""
    ops, calls = trace.all_device_ops, trace.calls
    full, made_room = np.zeros(len(rows), np.bool_), np.full(len(rows), NONE)
    row_of = rows.of_calls(len(calls))
    launched = np.flatnonzero(ops.launched)
    for stream in rows_by_key(ops.queue[launched]):
        mine = launched[stream]
        call = ops.call[mine]
        begun, returned = calls.start[call], calls.end[call]
        ahead = np.arange(len(mine)) - np.searchsorted(ops.start[mine], begun, side="right")
        at = np.flatnonzero((ahead >= FULL_QUEUE) & (returned - begun > BLOCKED_LAUNCH_NS))
        over = np.searchsorted(np.maximum.accumulate(ops.end[mine]), returned[at], side="right") - 1
        at, over = at[over >= 0], over[over >= 0]
        row = row_of[call[at]]
        full[row[row >= 0]], made_room[row[row >= 0]] = True, mine[over[row >= 0]]
    return full, made_room
