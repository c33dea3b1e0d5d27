"""Who owns the time in which the device is idle: each gap is followed to the launch that ends it, and to its thread.

For a gap [begin, end) that ends with an operation whose call returned at r:
- r <= begin: the work was queued, the device itself was late: `queued`;
- r > begin: the host was late. [begin, r) is split by what the launching thread did then
  (attribution/host_activity.py), and [r, end) is the latency of a launch; if it is longer than launches take, the
  device was kept by something else.
A gap that no recorded launch ends (the last one of the window, or a launch API that the profiler does not know) is
split by what the main launching thread did. Where nothing of the host was recorded, nothing says that it was late.
"""

from dataclasses import dataclass, fields

import numpy as np

from tb_bottleneck.attribution.host_activity import BLOCKING_CALL_NS, Activity, HostTimeline
from tb_bottleneck.attribution.sync_cost import NEVER, ChargeableGaps, SyncCosts, charge
from tb_bottleneck.attribution.sync_cost import RETURN_LAG_NS as RETURN_LAG_NS
from tb_bottleneck.intervals import Spans
from tb_bottleneck.trace.device_ops import DeviceOps
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.runtime_calls import Calls, Role
from tb_bottleneck.trace.table import Bools, Ints
from tb_bottleneck.trace.trace import Trace

# From the return of the call to the begin of the operation lie 4.5 to 8 us at the 2nd percentile of public traces, V100
# to H100; several times that is still a launch. Beyond it the device was given to somebody else, who left no record.
LONGEST_LATENCY_NS = 30_000
# What of such a delay a launch would have taken anyway.
USUAL_LATENCY_NS = 8_000
# Between two queued operations the device itself needs a moment: 0.75 us (V100), 1.2 us (H100), 2 to 3 us (A100) at the
# median of public traces. Shorter pauses belong to the device; no recorded event explains longer ones.
LONGEST_DEVICE_PAUSE_NS = 10_000
# Shorter synchronising calls found the work done. In a simulated training with a read per layer, waits from 15 us on
# explain the idle time behind them; shorter ones add nothing.
SHORTEST_WAIT_NS = 15_000
# A call that finds its work done takes 4 to 8 us itself; in a simulated training, 4 us leaves no bias in what waits
# cost.
USUAL_CALL_NS = 4_000


@dataclass(frozen=True, eq=False)
class IdleGaps:
    """The idle gaps of a window, in ns per gap and owner: they sum to end - begin.

    `sync_bubble` is contained in the dispatching and the latency.
    """

    begin: Ints
    end: Ints
    thread: Ints  # row of the trace's threads whose launch ends the gap, else the main one; -1 where there is none
    by_activity: Ints  # shape (gaps, Activity)
    latency: Ints  # from the return of the launching call to the begin of the operation, as far as a launch takes
    stalled: Ints  # what is longer than that
    queued: Ints  # the operation had been launched before the gap began, or nothing of the host was recorded
    sync_bubble: Ints  # the part of dispatching and latency that waits caused
    waits: SyncCosts

    def since(self, begin: int) -> "IdleGaps":
        """The gaps from a time on; the waits stay whole."""
        rows = self.begin >= begin
        arrays = {item.name: getattr(self, item.name)[rows] for item in fields(self) if item.name != "waits"}
        return IdleGaps(**arrays, waits=self.waits)


def find_gaps(trace: Trace, idle: Spans, host: HostTimeline) -> IdleGaps:
    """Splits the idle time of the trace's device. The spans need only be sorted and disjoint."""
    ops, calls = trace.device_ops, trace.calls
    first = np.minimum(np.searchsorted(ops.start, idle.ends, side="left"), len(ops) - 1)
    known = (ops.start[first] == idle.ends) & ops.launched[first]
    returned = np.where(known, calls.end[ops.call[first]] if len(calls) else 0, idle.ends)
    fallback = -1 if host.main_thread is None else host.main_thread
    thread = np.where(known, calls.thread[ops.call[first]] if len(calls) else 0, fallback)
    queued = (known & (returned <= idle.starts)) | (thread < 0)
    until = np.where(queued, idle.starts, np.minimum(returned, idle.ends))
    late = np.where(queued, 0, idle.ends - until)
    latency = np.where(late > LONGEST_LATENCY_NS, USUAL_LATENCY_NS, late)
    by_activity = _split(idle.starts, until, thread, host)
    costing = ChargeableGaps(idle, until, thread, by_activity[:, Activity.DISPATCH] + latency, latency, _frees(trace))
    waits, sync_bubble = charge(costing, host, *_waits(trace.all_device_ops, calls, trace.reads))
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


def _split(begin: Ints, until: Ints, thread: Ints, host: HostTimeline) -> Ints:
    """Time of each [begin, until) by what the gap's thread did."""
    parts = np.zeros((len(begin), len(Activity)), np.int64)
    for rows, activities in host.by_thread_group(thread):
        for activity, spans in activities.items():
            parts[rows, activity] = spans.covered(begin[rows], until[rows])
    parts[:, Activity.OTHER] = until - begin - parts[:, : Activity.OTHER].sum(axis=1)
    return parts


def _waits(ops: DeviceOps, calls: Calls, reads: Bools) -> tuple[Ints, Ints, Ints]:
    """The calls that waited, when each was over, and how long it was. `reads` are those that copy to the host.

    A synchronising call waited if an operation of any device ended inside it; that end may seem to lie a little behind
    the return, as inexact as the device's clock and whole-microsecond stamps are. A copying call waited if its own copy
    ran during the call: from pageable memory it returns when the last part is staged, up to 30 us before the copy ends.
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
    """Begins of the calls that give memory back, sorted: they wait for the device too, whatever waited before."""
    calls = trace.calls.of(Role.ALLOCATE)
    frees = name_matches(
        trace.names, calls.name, lambda name: any(word in name for word in ("Free", "Unmap", "Release"))
    )
    return calls.start[frees]
