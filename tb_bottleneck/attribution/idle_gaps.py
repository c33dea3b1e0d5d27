"""Splits the idle gaps of the device by cause. A gap is a time span in which no operation runs on the device.

A gap [begin, end) ends when an operation starts. Let r be the time at which the call that launched this operation
returned:
- r <= begin: the operation was queued, and the device itself was late. The gap counts as `queued`.
- r > begin: the host was late. [begin, r) is split by the activities of the launching thread
  (attribution/host_activity.py). [r, end) is launch latency. If it is longer than a launch takes, the excess is
  `stalled`: something else occupied the device.
A gap without a recorded launch (the last gap of the window, or a launch API that the profiler does not know) is split
by the activities of the main thread. If nothing was recorded on the host, the gap counts as `queued`.

This module also has the tables of host time, with one column per activity. A row is an idle gap of the device, or an
item of a replay graph.

Most activities do not occur in a recording. The columns of these activities are all zero and take no memory. A changed
copy of a table shares the unchanged columns with the original. This saves memory, because a dozen replay graphs of one
recording, each with a table, exist at the same time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from tb_bottleneck.attribution.host_activity import BLOCKING_CALL_NS, Activity, HostTimeline
from tb_bottleneck.attribution.sync_cost import NEVER, ChargeableGaps, SyncCosts, charge
from tb_bottleneck.attribution.sync_cost import RETURN_LAG_NS as RETURN_LAG_NS
from tb_bottleneck.base.intervals import Spans
from tb_bottleneck.base.measure import Record
from tb_bottleneck.trace.device_ops import DeviceOps
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.runtime_calls import Calls, Role
from tb_bottleneck.trace.table import Bools, Ints
from tb_bottleneck.trace.trace import Trace


class ActivityTimes(Record, frozen=True, eq=False):
    """Host times in ns. `columns` has one array per activity, in the order of Activity. All have the same length."""

    columns: tuple[Ints, ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, rows: Any) -> "ActivityTimes":
        """Returns the selected rows. `rows` is an index array, a mask or a slice."""
        return times_of([column[rows] for column in self.columns])

    def of(self, activity: Activity) -> Ints:
        """Returns the host time that each row spends in `activity`, in ns."""
        return self.columns[activity]

    def total(self, *activities: Activity) -> Ints:
        """Returns for each row the sum of the times in `activities`, in ns. Without arguments, sums all activities."""
        total = np.zeros(len(self), np.int64)
        for activity in activities or Activity:
            if not _is_zero(self.columns[activity]):
                total += self.columns[activity]
        return total

    def with_column(self, activity: Activity, column: Ints) -> "ActivityTimes":
        """Returns a copy in which `column` (ns) replaces the column of `activity`."""
        return times_of([*self.columns[:activity], column, *self.columns[activity + 1 :]])

    def each(self, change: Callable[[Ints], Ints]) -> "ActivityTimes":
        """Returns a copy with `change` applied to each column. `change` must map 0 to 0."""
        return times_of([column if _is_zero(column) else change(column) for column in self.columns])

    def equals(self, other: "ActivityTimes") -> bool:
        """Returns True if `other` has the same times."""
        pairs = zip(self.columns, other.columns, strict=True)
        return all(mine is theirs or np.array_equal(mine, theirs) for mine, theirs in pairs)


def times_of(columns: Sequence[Ints]) -> ActivityTimes:
    """Returns a table of the given columns, one per activity, in the order of Activity."""
    return ActivityTimes(tuple(column if column.any() else no_time(len(column)) for column in columns))


def no_time(count: int) -> Ints:
    """Returns a read-only column of `count` zeros that takes no memory."""
    return np.broadcast_to(np.int64(0), count)


def activity_times(host: HostTimeline, thread: Ints, begin: Ints, end: Ints) -> ActivityTimes:
    """Returns a table with one row per interval [begin[i], end[i]), in ns: its time by activity of thread[i].

    `thread[i]` is a row of the trace's threads, or -1 for no thread. Without a thread, all time of the interval is
    OTHER.
    """
    columns = [no_time(len(begin))] * len(Activity)
    for rows, activities in host.by_thread_group(thread):
        for activity, spans in activities.items():
            if len(spans) and activity is not Activity.OTHER:
                if _is_zero(columns[activity]):
                    columns[activity] = np.zeros(len(begin), np.int64)
                columns[activity][rows] = spans.covered(begin[rows], end[rows])
    known = times_of(columns)
    return known.with_column(Activity.OTHER, end - begin - known.total())


def _is_zero(column: Ints) -> bool:
    return column.strides == (0,)


# The 2nd percentile of the time from the return of the call to the start of the operation is 4.5 to 8 us in public
# traces, V100 to H100; several times that is still a launch. If it takes longer, something that was not recorded used
# the device.
LONGEST_LATENCY_NS = 30_000
# The part of a longer delay that a launch takes anyway.
USUAL_LATENCY_NS = 8_000
# Between two queued operations the device itself needs a moment: 0.75 us (V100), 1.2 us (H100), 2 to 3 us (A100) at the
# median of public traces. Shorter pauses belong to the device; no recorded event explains longer ones.
LONGEST_DEVICE_PAUSE_NS = 10_000
# Late starts of operations after a wait are a cost of the wait, because queued work would hide them. This does not hold
# if the device also pauses before queued work. The limit is the ratio of the total time of these pauses to the total
# time of late starts. A choice.
PAUSES_IN_QUEUE = 0.1
# Shorter synchronising calls do not wait: the work of the device is already done. In a simulated training that reads a
# value in each layer, waits of 15 us or more explain the idle time after these waits. Shorter ones add nothing.
SHORTEST_WAIT_NS = 15_000
# A synchronising call takes 4 to 8 us even if the work is already done. In a simulated training, 4 us gives an unbiased
# cost of waits.
USUAL_CALL_NS = 4_000


@dataclass(frozen=True, eq=False)
class IdleGaps:
    """The idle gaps of a window, with one element per gap (except `waits`) and times in ns.

    `by_activity`, `latency`, `stalled` and `queued` of a gap sum to end - begin. `waits` are the calls that waited for
    the device, with the cost of each call.
    """

    begin: Ints
    end: Ints
    thread: Ints  # row of the trace's threads: the launching thread, or the main thread; -1 for none
    by_activity: ActivityTimes
    latency: Ints  # from the return of the launching call to the start of the operation, up to the time a launch takes
    stalled: Ints  # the time from the return to the start that is longer than a launch takes
    queued: Ints  # whole gap if its operation was launched before it began, or nothing was recorded on the host; else 0
    sync_bubble: Ints  # the part of dispatching, latency and stall that is charged to `waits`
    waits: SyncCosts

    def since(self, begin: int) -> "IdleGaps":
        """Returns the gaps that begin at or after `begin` (ns). `waits` is unchanged: it has all waits."""
        rows = self.begin >= begin
        if rows.all():
            return self
        arrays = {item.name: getattr(self, item.name)[rows] for item in fields(self) if item.name != "waits"}
        return IdleGaps(**arrays, waits=self.waits)


def find_gaps(trace: Trace, idle: Spans, host: HostTimeline) -> IdleGaps:
    """Returns one gap per span in `idle`, split by cause. `idle` is the idle time of the trace's device.

    Two spans may touch (one ends where the next one starts).
    """
    ops, calls = trace.device_ops, trace.calls
    first = np.minimum(np.searchsorted(ops.start, idle.ends, side="left"), len(ops) - 1)
    has_launch = (ops.start[first] == idle.ends) & ops.launched[first]
    returned = np.where(has_launch, calls.end[ops.call[first]] if len(calls) else 0, idle.ends)
    fallback = -1 if host.main_thread is None else host.main_thread
    thread = np.where(has_launch, calls.thread[ops.call[first]] if len(calls) else 0, fallback)
    queued = (has_launch & (returned <= idle.starts)) | (thread < 0)
    until = np.where(queued, idle.starts, np.minimum(returned, idle.ends))
    late = np.where(queued, 0, idle.ends - until)
    latency = np.where(late > LONGEST_LATENCY_NS, USUAL_LATENCY_NS, late)
    by_activity = activity_times(host, thread, idle.starts, until)
    paused = np.where(queued & has_launch, idle.ends - idle.starts, 0)
    in_queue = int(paused[paused >= LONGEST_DEVICE_PAUSE_NS].sum()) > PAUSES_IN_QUEUE * int((late - latency).sum())
    start = latency if in_queue else late
    chargeable = ChargeableGaps(idle, until, thread, by_activity.of(Activity.DISPATCH) + start, start, _frees(trace))
    waits, sync_bubble = charge(chargeable, host, *_waits(trace.all_device_ops, calls, trace.reads))
    return IdleGaps(
        begin=idle.starts,
        end=idle.ends,
        thread=thread,
        by_activity=by_activity,
        latency=latency,
        stalled=late - latency,
        queued=np.where(queued, idle.ends - idle.starts, 0),
        sync_bubble=sync_bubble,
        waits=waits,
    )


def _waits(ops: DeviceOps, calls: Calls, reads: Bools) -> tuple[Ints, Ints, Ints]:
    """Returns the rows of `calls` that waited for the device, and the end and the length of each wait, in ns.

    `reads` is a mask of `calls`: True for calls that copy to the host.

    A synchronising call waited if an operation of any device ended during the call. The recorded end of the operation
    may be slightly after the return of the call, because the device's clock is inexact and times may be whole
    microseconds. A call that copies waited if its own copy started before the call returned. The copy may end later:
    with pageable memory, the call returns when the last part of the data is staged, up to 30 us before the copy ends.
    """
    ends, own_start, own_end = np.sort(ops.end), np.full(len(calls), NEVER), np.zeros(len(calls), np.int64)
    np.minimum.at(own_start, ops.call[ops.launched], ops.start[ops.launched])
    np.maximum.at(own_end, ops.call[ops.launched], ops.end[ops.launched])
    latest = np.searchsorted(ends, calls.end + RETURN_LAG_NS, side="right") - 1
    ended_inside = (latest >= 0) & (ends[np.maximum(latest, 0)] > calls.start) if len(ends) else np.zeros(0, np.bool_)
    length = calls.end - calls.start
    synced = (calls.role == Role.WAIT) & (length > SHORTEST_WAIT_NS) & ended_inside
    shortest = np.where(reads, SHORTEST_WAIT_NS, BLOCKING_CALL_NS)
    copied = (calls.role == Role.COPY) & (length > shortest) & (own_start < calls.end)
    over = np.where(copied, np.maximum(calls.end, own_end), calls.end)
    rows = np.flatnonzero(synced | copied)
    return rows.astype(np.int64), over[rows], np.maximum(length[rows] - USUAL_CALL_NS, 0)


def _frees(trace: Trace) -> Ints:
    """Returns the sorted start times of the calls that free memory, which always wait for the device."""
    calls = trace.calls.of(Role.ALLOCATE)
    frees = name_matches(
        trace.names, calls.name, lambda name: any(word in name for word in ("Free", "Unmap", "Release"))
    )
    return calls.start[frees]
