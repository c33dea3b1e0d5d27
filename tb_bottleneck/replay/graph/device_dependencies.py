"""The device's part of the graph: the dependencies that determine when each operation begins.

An operation can begin if three conditions hold: its launch has reached the device (`latency` after the call began),
its stream is free (`pause` after the previous operation of the stream ended), and the operation of another stream on
which it depends has ended (`after`, with a `lag`). The recorded times show which of the three delayed the operation.
The other two get the smallest values that are usually seen. The first of these rules that applies decides:

- if the stream was free before the call began, the launch delayed the operation;
- if the operation began within LONGEST_PAUSE_NS of the stream's previous operation, or is a copy whose call waits for
  the stream and then stages the data, the stream delayed it;
- if an operation of another stream ended just before the operation began, that other operation delayed it;
- if the launching call was still running (a copy that is staged, a launch that blocks), the call delayed the operation;
- if none of these applies, the cause was not recorded. The pause keeps its recorded length, and counts as frozen.

If a call makes a stream wait for an event, the next operation launched on this stream depends on the operation launched
last on another stream. This dependency is kept even if it delayed nothing, because it may delay the operation once
other dependencies get shorter.

Where the dependencies in a CUDA graph were recorded (trace/columns/graph_dependencies.py), an operation waits only for
recorded dependencies. Of its dependencies on other streams, the one that ended last is used.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.idle_gaps import LONGEST_LATENCY_NS, USUAL_LATENCY_NS
from tb_bottleneck.base.arrays import percentile
from tb_bottleneck.base.measure import Record
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Bools, Ints, Table, column, rows_by_key
from tb_bottleneck.trace.trace import Trace

# Pauses between two queued operations are 0.75 to 3 us at the median of public traces (V100 to H100), with tails to 10
# us and more; a longer pause means that something delayed the second operation.
LONGEST_PAUSE_NS = 20_000
# An operation that begins this soon after the end of an operation on another stream waited for that operation.
DEPENDENCY_NS = 20_000
# The clocks of two streams may differ by this much.
CLOCK_NS = 1_000
# A dependency that ended long before gets this lag, in case it becomes the last one to end.
USUAL_LAG_NS = 2_000
FLOOR_PERCENTILE = 2
LONG_AGO = -(2**60)


@dataclass(frozen=True, eq=False)
class DeviceDependencies(Table):
    """One row per operation of all devices: what must happen before it begins, and how long before."""

    latency: Ints = column("ns", "from the start of the launching call; LONG_AGO if the launch is not known")
    issue: Ints = column("ns", "when the launching call launched: its start, or later in a long call")
    pause: Ints = column("ns", "from the end of the stream's last operation")
    after: Ints = column("row of device ops", "an operation of another stream that must have ended; -1 for none")
    lag: Ints = column("ns", "from the end of that operation")
    frozen: Ints = column("ns", "part of the pause or the latency that nothing recorded explains")


def find_device_dependencies(trace: Trace) -> DeviceDependencies:
    """Returns what each operation of `trace.all_device_ops` depends on: its launch, the previous operation of its
    stream, and an operation of another stream (see the module docstring for the rules)."""
    ops, calls = trace.all_device_ops, trace.calls
    begun = np.where(ops.launched, calls.start[ops.call] if len(calls) else 0, LONG_AGO)
    returned = np.where(ops.launched, calls.end[ops.call] if len(calls) else 0, LONG_AGO)
    free = stream_free(ops.queue, ops.start, ops.end)
    recorded = _recorded(trace)
    reasons, since_free = _reasons(trace, begun, returned, free, recorded), ops.start - free
    least_latency, least_pause = (
        _smallest_usual(ops.start - begun, reasons.launch & ~reasons.late),
        _smallest_usual(since_free, reasons.stream),
    )
    issue = np.where(reasons.launch, np.clip(ops.start - least_latency, begun, returned), begun)
    latency = np.where(
        reasons.launch & ~reasons.elsewhere, ops.start - issue, np.minimum(ops.start - issue, least_latency)
    )
    event_wait, awaited = _event_waits(trace)
    event_wait[recorded.known], awaited[recorded.known] = recorded.waits[recorded.known], recorded.after[recorded.known]
    event_wait &= ~reasons.elsewhere & (ops.end[awaited] <= ops.start + CLOCK_NS)
    after = np.where(reasons.elsewhere, reasons.after, np.where(event_wait, awaited, NONE))
    lag = ops.start - ops.end[after]
    frozen = np.where(reasons.late & ~reasons.elsewhere, ops.start - returned - USUAL_LATENCY_NS, 0)
    return DeviceDependencies(
        latency=np.where(ops.launched, latency, LONG_AGO),
        issue=issue,
        pause=np.where(reasons.stream | reasons.nothing, since_free, np.minimum(since_free, least_pause)),
        after=after,
        lag=np.where(after >= 0, np.where(event_wait, np.minimum(lag, USUAL_LAG_NS), lag), 0),
        frozen=np.where(reasons.nothing, since_free, frozen),
    )


class _Reasons(Record, frozen=True, eq=False):
    """What delayed the start of each device operation, as masks over the operations.

    `launch`: its launch; `stream`: the previous operation of its stream; `elsewhere`: the operation `after` (a row) of
    another stream; `nothing`: nothing that was recorded. `late` operations began long after their launching call had
    returned, on a stream that was free.
    """

    launch: Bools
    late: Bools
    stream: Bools
    elsewhere: Bools
    after: Ints
    nothing: Bools


class _Recorded(Record, frozen=True, eq=False):
    """The dependencies that CUDA graphs recorded, with one value per device operation.

    `known`: whether the dependencies of the operation were recorded. `waits`: whether the operation waits for
    operations of other streams. `after`: the row of the operation that ended last among these; any row if there is
    none.
    """

    known: Bools
    waits: Bools
    after: Ints


def _recorded(trace: Trace) -> _Recorded:
    ops, (before, after) = trace.all_device_ops, trace.dependencies
    known, waits, last = np.zeros(len(ops), np.bool_), np.zeros(len(ops), np.bool_), np.zeros(len(ops), np.int64)
    known[before] = known[after] = True
    other = ops.queue[before] != ops.queue[after]
    before, after = before[other], after[other]
    order = np.argsort(ops.end[before], kind="stable")  # the last assignment is kept
    last[after[order]], waits[after] = before[order], True
    return _Recorded(known, waits, last)


def _reasons(trace: Trace, begun: Ints, returned: Ints, free: Ints, recorded: _Recorded) -> _Reasons:
    ops, calls = trace.all_device_ops, trace.calls
    launch = ops.launched & (free <= begun)
    late = launch & (ops.start > returned + LONGEST_LATENCY_NS)
    copying = ops.launched & (calls.role[ops.call] == Role.COPY if len(calls) else False)
    staged = copying & ~launch & (ops.start < returned)
    stream = ~launch & ((ops.start - free <= LONGEST_PAUSE_NS) | staged)
    elsewhere, after = _ended_just_before(ops.start, ops.end)
    after = np.where(recorded.known, recorded.after, after)
    elsewhere = np.where(recorded.known, recorded.waits & (ops.start - ops.end[after] <= DEPENDENCY_NS), elsewhere)
    elsewhere &= late | (~launch & ~stream)
    in_call = ops.launched & (ops.start <= returned + LONGEST_LATENCY_NS) & ~launch & ~stream & ~elsewhere
    launch |= in_call
    nothing = ~launch & ~stream & ~elsewhere & (free > LONG_AGO)
    return _Reasons(launch, late, stream, elsewhere, after, nothing)


def stream_free(queue: Ints, start: Ints, end: Ints) -> Ints:
    """Returns per operation when its stream became free (ns): the latest end of all earlier operations of the stream.

    `queue`, `start` and `end` have one value per operation: the stream, and the times in ns. Operations must be sorted
    by start. The value is LONG_AGO for the first operation of a stream. It may be after the start of the operation: on
    newer devices, an operation may begin a little before the previous one has ended.
    """
    free = np.full(len(start), LONG_AGO)
    for rows in rows_by_key(queue):
        free[rows[1:]] = np.maximum.accumulate(end[rows])[:-1]
    return free


def _ended_just_before(start: Ints, end: Ints) -> tuple[Bools, Ints]:
    """Returns a mask of the operations for which another operation ended at most DEPENDENCY_NS before their start, and
    per operation the row of the last such operation.

    `start` and `end` are in ns, one per operation.
    """
    if not len(start):
        return np.zeros(0, np.bool_), np.zeros(0, np.int64)
    order = np.argsort(end, kind="stable")
    last = order[np.maximum(np.searchsorted(end[order], start + CLOCK_NS, side="right") - 1, 0)]
    near = (end[last] <= start + CLOCK_NS) & (start - end[last] <= DEPENDENCY_NS) & (start[last] < start)
    return near, last.astype(np.int64)


def _event_waits(trace: Trace) -> tuple[Bools, Ints]:
    """Returns a mask of the operations, and per operation the row of the last operation launched before it on another
    stream. The mask is True if a call made a stream wait for an event directly before the operation's launch."""
    ops, calls = trace.all_device_ops, trace.calls
    event_wait, awaited = np.zeros(len(ops), np.bool_), np.zeros(len(ops), np.int64)
    makes_wait = name_matches(trace.names, calls.name, lambda name: "StreamWaitEvent" in name)
    launched = np.flatnonzero(ops.launched)
    if not makes_wait.any() or not len(launched):
        return event_wait, awaited
    begun = calls.start[ops.call[launched]]
    order = launched[np.lexsort((ops.start[launched], begun))]
    begun, numbers = np.sort(begun), np.arange(len(order))
    waits = np.searchsorted(calls.start[makes_wait], begun)
    made_to_wait = np.diff(waits, prepend=0) > 0
    # `other` is the last launch on another stream: the one before the series of launches on this stream.
    changes = np.append(True, ops.queue[order[1:]] != ops.queue[order[:-1]])
    other = np.maximum.accumulate(np.where(changes, numbers, 0)) - 1
    event_wait[order], awaited[order] = made_to_wait & (other >= 0), order[np.maximum(other, 0)]
    return event_wait, awaited


def _smallest_usual(values: Ints, rows: Bools) -> int:
    """Returns the FLOOR_PERCENTILE-th percentile of `values` in the mask `rows`; 0 if the mask selects nothing."""
    return int(percentile(values[rows], FLOOR_PERCENTILE)) if rows.any() else 0
