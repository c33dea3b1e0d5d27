"""The device's part of the graph: why each operation began when it did.

An operation can begin once its launch has reached the device (`latency` after the call began), once the stream is free
(`pause` after its last operation ended), and once what it depends on elsewhere is over (`after`, with a `lag`). Which
of the three held it up is read from the times; the other two keep the smallest values seen:

- the stream was free before the call began: the launch held it up;
- it began within LONGEST_PAUSE_NS of the stream's last operation, or is a copy whose call waits for the stream and
  then stages it: the stream did;
- else an operation of another stream that ended just before it, where there is one;
- else the call itself, where it was still running: a copy that is staged, a launch that blocks;
- else nothing recorded did. The pause stays as it was, and counts as frozen.

A call that makes a stream wait for an event tells of a dependency that held nothing up this time, but may when what is
before it takes less time: that of the next launch on what was launched last on another stream.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.idle_gaps import LONGEST_LATENCY_NS, USUAL_LATENCY_NS
from tb_bottleneck.replay.graph.group_rows import rows_by_key
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Bools, Ints, Table, column
from tb_bottleneck.trace.trace import Trace

# Pauses between two queued operations are 0.75 to 3 us at the median of public traces (V100 to H100), with tails to
# 10 us and more; beyond this something held the second one up.
LONGEST_PAUSE_NS = 20_000
# What begins this soon after the end of an operation on another stream waited for it.
DEPENDENCY_NS = 20_000
# What the clocks of two streams may differ by.
CLOCK_NS = 1_000
# A dependency that was over long before lets an operation begin this much after it, were it to become the last one.
USUAL_LAG_NS = 2_000
FLOOR_PERCENTILE = 2
LONG_AGO = -(2**60)


@dataclass(frozen=True, eq=False)
class DeviceDependencies(Table):
    """One row per device operation of every device: what must be before it begins, and how much before."""

    latency: Ints = column("ns", "from the begin of the launching call; LONG_AGO where the launch is not known")
    issue: Ints = column("ns", "when the launching call did its launching: its begin, later in a call that took long")
    pause: Ints = column("ns", "from the end of the stream's last operation")
    after: Ints = column("row of device ops", "an operation of another stream that must be over; -1 for none")
    lag: Ints = column("ns", "from the end of that one")
    frozen: Ints = column("ns", "of the pause or the latency, what nothing recorded explains")


def find_device_dependencies(trace: Trace) -> DeviceDependencies:
    """The links of all device operations."""
    ops, calls = trace.all_device_ops, trace.calls
    begun = np.where(ops.launched, calls.start[ops.call] if len(calls) else 0, LONG_AGO)
    returned = np.where(ops.launched, calls.end[ops.call] if len(calls) else 0, LONG_AGO)
    free = stream_free(ops.queue, ops.start, ops.end)
    why, waited = _reasons(trace, begun, returned, free), ops.start - free
    least_latency, least_pause = _floor(ops.start - begun, why.launch & ~why.late), _floor(waited, why.stream)
    issue = np.where(why.launch, np.clip(ops.start - least_latency, begun, returned), begun)
    latency = np.where(why.launch & ~why.elsewhere, ops.start - issue, np.minimum(ops.start - issue, least_latency))
    told, awaited = _told_to_wait(trace)
    told &= ~why.elsewhere & (ops.end[awaited] <= ops.start + CLOCK_NS)
    after = np.where(why.elsewhere, why.after, np.where(told, awaited, NONE))
    lag = ops.start - ops.end[after]
    frozen = np.where(why.late & ~why.elsewhere, ops.start - returned - USUAL_LATENCY_NS, 0)
    return DeviceDependencies(
        latency=np.where(ops.launched, latency, LONG_AGO),
        issue=issue,
        pause=np.where(why.stream | why.nothing, waited, np.minimum(waited, least_pause)),
        after=after,
        lag=np.where(after >= 0, np.where(told, np.minimum(lag, USUAL_LAG_NS), lag), 0),
        frozen=np.where(why.nothing, waited, frozen),
    )


@dataclass(frozen=True, eq=False)
class _Reasons:
    """What held each operation up: its launch, its stream, one of another stream (`after`), or nothing recorded.

    `late` ones began long after their launch had returned, on a stream that was free.
    """

    launch: Bools
    late: Bools
    stream: Bools
    elsewhere: Bools
    after: Ints
    nothing: Bools


def _reasons(trace: Trace, begun: Ints, returned: Ints, free: Ints) -> _Reasons:
    ops, calls = trace.all_device_ops, trace.calls
    launch = ops.launched & (free <= begun)
    late = launch & (ops.start > returned + LONGEST_LATENCY_NS)
    copying = ops.launched & (calls.role[ops.call] == Role.COPY if len(calls) else False)
    staged = copying & ~launch & (ops.start < returned)
    stream = ~launch & ((ops.start - free <= LONGEST_PAUSE_NS) | staged)
    elsewhere, after = _ended_just_before(ops.start, ops.end)
    elsewhere &= late | (~launch & ~stream)
    in_call = ops.launched & (ops.start <= returned + LONGEST_LATENCY_NS) & ~launch & ~stream & ~elsewhere
    launch |= in_call
    nothing = ~launch & ~stream & ~elsewhere & (free > LONG_AGO)
    return _Reasons(launch, late, stream, elsewhere, after, nothing)


def stream_free(queue: Ints, start: Ints, end: Ints) -> Ints:
    """When the stream of each operation was free: the latest end among those before it; LONG_AGO for a first one.

    The operations are sorted by start. On newer devices one may begin a little before the one before it has ended.
    """
    free = np.full(len(start), LONG_AGO)
    for rows in rows_by_key(queue):
        free[rows[1:]] = np.maximum.accumulate(end[rows])[:-1]
    return free


def _ended_just_before(start: Ints, end: Ints) -> tuple[Bools, Ints]:
    """For each begin whether an operation ended just before, and which was the last to do so."""
    if not len(start):
        return np.zeros(0, np.bool_), np.zeros(0, np.int64)
    order = np.argsort(end, kind="stable")
    last = order[np.maximum(np.searchsorted(end[order], start + CLOCK_NS, side="right") - 1, 0)]
    near = (end[last] <= start + CLOCK_NS) & (start - end[last] <= DEPENDENCY_NS) & (start[last] < start)
    return near, last.astype(np.int64)


def _told_to_wait(trace: Trace) -> tuple[Bools, Ints]:
    """Operations before whose launch a stream was made to wait, and what was launched last on another stream before."""
    ops, calls = trace.all_device_ops, trace.calls
    told, awaited = np.zeros(len(ops), np.bool_), np.zeros(len(ops), np.int64)
    makes_wait = name_matches(trace.names, calls.name, lambda name: "StreamWaitEvent" in name)
    launched = np.flatnonzero(ops.launched)
    if not makes_wait.any() or not len(launched):
        return told, awaited
    begun = calls.start[ops.call[launched]]
    order = launched[np.lexsort((ops.start[launched], begun))]
    begun, numbers = np.sort(begun), np.arange(len(order))
    waits = np.searchsorted(calls.start[makes_wait], begun)
    asked = np.diff(waits, prepend=0) > 0
    # The run of launches on one stream that this one is part of began behind a launch on another stream.
    changes = np.append(True, ops.queue[order[1:]] != ops.queue[order[:-1]])
    other = np.maximum.accumulate(np.where(changes, numbers, 0)) - 1
    told[order], awaited[order] = asked & (other >= 0), order[np.maximum(other, 0)]
    return told, awaited


def _floor(values: Ints, rows: Bools) -> int:
    """The smallest value usually seen; 0 where there is none."""
    return int(np.percentile(values[rows], FLOOR_PERCENTILE)) if rows.any() else 0
