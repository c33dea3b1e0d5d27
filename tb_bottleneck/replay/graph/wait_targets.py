"""Finds what each call waited for: the operation that has to end before the host continues.

- A copy call waits for its own operation if the operation ran during the call.
- A wait call waits for the last operation that was launched on the stream before the call. The stream is that of the
  last operation that ended inside the call, or of the last launch if no operation ended inside the call. A wait for a
  device waits for all streams.
- A call that frees memory waits for the whole device.
- A launch waits if the queue is full: many operations are ahead of the launch, and the call takes unusually long.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.host_activity import BLOCKING_CALL_NS
from tb_bottleneck.attribution.idle_gaps import RETURN_LAG_NS, SHORTEST_WAIT_NS, USUAL_CALL_NS
from tb_bottleneck.base.measure import Record
from tb_bottleneck.replay.graph.host_rows import NONE, HostRows, drains, ended_inside
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Bools, Ints, Table, column, rows_by_key
from tb_bottleneck.trace.trace import Trace

# Number of operations that a stream's queue holds; launches beyond it block (HolisticTraceAnalysis, constants.py: about
# 1024).
QUEUE = 1024
# If fewer operations are ahead of a launch that takes long, something other than the queue delays the launch.
FULL_QUEUE = QUEUE // 2
# A launch that blocks takes at least this long; a usual one takes 3 to 10 us.
BLOCKED_LAUNCH_NS = BLOCKING_CALL_NS


@dataclass(frozen=True, eq=False)
class WaitTargets(Table):
    """One row per row of HostRows: what the call waits for, and how long the call takes without waiting."""

    op: Ints = column("row of device ops", "the operation that must end; -1 for none")
    whole: Bools = column("flag", "True if all work of the devices must end")
    lag: Ints = column("ns", "from the end of that work to the return; negative if the call returns earlier")
    cost: Ints = column("ns", "the call's own time, from its launch on")
    unknown: Ints = column("ns", "time in a wait with no recorded reason")


def find_wait_targets(trace: Trace, rows: HostRows, issue: Ints, launched_end: Ints) -> WaitTargets:
    """Returns what each row of the host rows `rows` waits for.

    `issue` and `launched_end` have one time (ns) per row. `issue` is when the row launched its device operation, or the
    start of the row if it launches nothing. `launched_end` is the latest end of all device operations that were
    launched before the row returned.
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
    unblocked = waiting & ~blocked & ~whole & _named(trace, rows, "StreamSynchronize")
    op[unblocked] = _last_done(trace, rows.start[unblocked], rows.end[unblocked])
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


class _WaitCandidates(Record, frozen=True, eq=False):
    """What each host row may wait for, before the times are compared.

    `op` is a row of the device operations; -1 for none. The others are masks of the rows: `whole` rows wait for all
    device work, `may_wait` rows wait for something, `binding` rows certainly waited in the recording, and `waiting`
    rows are calls with the role WAIT.
    """

    op: Ints
    whole: Bools
    may_wait: Bools
    binding: Bools
    waiting: Bools


def _timed(trace: Trace, rows: HostRows, issue: Ints, launched_end: Ints, candidates: _WaitCandidates) -> WaitTargets:
    """Returns the wait targets with their times. A candidate whose work ends after the call is no target.

    `issue` and `launched_end` are as in find_wait_targets.
    """
    # A wait for one device does not wait for the work of others. If work goes on after the call, the call did not wait
    # for all work.
    whole = candidates.whole & (launched_end <= rows.end + RETURN_LAG_NS)
    may_wait = candidates.may_wait & (whole | (candidates.op >= 0))
    over = np.where(whole, launched_end, trace.all_device_ops.end[candidates.op] if len(trace.all_device_ops) else 0)
    since = rows.end - over
    binding = candidates.binding | (whole & (since < rows.end - rows.start))
    # A call that frees memory does work of its own after the wait. A call whose awaited work had ended before needed
    # all of its time for itself.
    own = np.where(
        whole & ~candidates.waiting, rows.end - np.maximum(issue, over), np.minimum(USUAL_CALL_NS, rows.end - issue)
    )
    cost = np.maximum(np.where(may_wait & binding, own, rows.end - issue), 0)
    behind = np.where(whole & ~candidates.waiting, rows.end - rows.start, USUAL_CALL_NS)
    unknown = candidates.waiting & ~may_wait & (rows.end - rows.start > BLOCKING_CALL_NS)
    return WaitTargets(
        op=np.where(may_wait & ~whole, candidates.op, NONE),
        whole=whole,
        lag=np.where(may_wait, np.where(binding, since, np.minimum(since, behind)), 0),
        cost=cost,
        unknown=np.where(unknown, rows.end - rows.start - USUAL_CALL_NS, 0),
    )


def _named(trace: Trace, rows: HostRows, *words: str) -> Bools:
    return name_matches(trace.names, trace.calls.name, lambda name: any(word in name for word in words))[rows.call]


def _own_last(trace: Trace) -> Ints:
    """Returns per call the row of the device operation that ends last among those the call launched; -1 if the call
    launched none."""
    ops = trace.all_device_ops
    own = np.full(len(trace.calls), NONE)
    rows = np.flatnonzero(ops.launched)
    rows = rows[np.argsort(ops.end[rows], kind="stable")]
    own[ops.call[rows]] = rows
    return own


def _last_done(trace: Trace, start: Ints, end: Ints) -> Ints:
    """Returns for each call the row of the last device operation that was launched before the call.

    `start` and `end` are the times of the calls in ns. The value is -1 if there is no such operation, or if it ended
    after the call.
    """
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
    """Returns a mask of the host rows whose launch waited because the stream's queue was full, and per row the device
    operation whose end made room in the queue; -1 for none."""
    ops, calls = trace.all_device_ops, trace.calls
    full, made_room = np.zeros(len(rows), np.bool_), np.full(len(rows), NONE)
    row_of = rows.of_calls(len(calls))
    launched = np.flatnonzero(ops.launched)
    for stream in rows_by_key(ops.queue[launched]):
        on_stream = launched[stream]
        call = ops.call[on_stream]
        begun, returned = calls.start[call], calls.end[call]
        ahead = np.arange(len(on_stream)) - np.searchsorted(ops.start[on_stream], begun, side="right")
        at = np.flatnonzero((ahead >= FULL_QUEUE) & (returned - begun > BLOCKED_LAUNCH_NS))
        over = np.searchsorted(np.maximum.accumulate(ops.end[on_stream]), returned[at], side="right") - 1
        at, over = at[over >= 0], over[over >= 0]
        row = row_of[call[at]]
        full[row[row >= 0]], made_room[row[row >= 0]] = True, on_stream[over[row >= 0]]
    return full, made_room
