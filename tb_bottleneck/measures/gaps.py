"""Who owns the time in which the device is idle: each gap is followed to the launch that ends it, and to its thread.

For a gap [begin, end) that ends with an operation whose call returned at r:
- r <= begin: the work was queued, the device itself was late: `queued`;
- r > begin: the host was late. [begin, r) is split by what the launching thread did then (measures/doing.py), and
  [r, end) is the latency of a launch; if it is longer than launches take, the device was kept by something else.
A gap that no recorded launch ends (the last one of the window, or a launch API that the profiler does not know) is
split by what the main launching thread did.

Sync bubbles: when the host waits until the device has run dry, the device stays idle while the host dispatches again.
Without the wait the host would have done the work behind it that much earlier, and no more: so the first idle time
behind the return of the call, up to the length of the wait, is the wait's. Whatever the host does in that time uses the
length up; only dispatching is charged to the wait, the rest keeps its owner.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.intervals import Spans
from tb_bottleneck.measures.doing import BLOCKING_CALL_NS, Doing, HostTimeline
from tb_bottleneck.trace.calls import Calls, Role
from tb_bottleneck.trace.device import DeviceOps
from tb_bottleneck.trace.table import Ints
from tb_bottleneck.trace.trace import Trace

# A wait and the end of what it waited for lie this close (the return of a synchronising call takes a few us).
RETURN_LAG_NS = 20_000
# From the return of the call to the begin of the operation lie 4.5 to 8 us at the 2nd percentile of public traces, V100
# to H100; several times that is still a launch. Beyond it the device was given to somebody else, who left no record.
LONGEST_LATENCY_NS = 30_000
# What of such a delay a launch would have taken anyway.
USUAL_LATENCY_NS = 8_000
# Shorter synchronising calls found the work done. In a simulated training with a read per layer, waits from 15 us on
# explain the idle time behind them; shorter ones add nothing.
SHORTEST_WAIT_NS = 15_000
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Gaps:
    """The idle gaps of a window, in ns per gap and owner: they sum to end - begin.

    `sync_bubble` is contained in the dispatching and the latency.
    """

    begin: Ints
    end: Ints
    thread: Ints  # row of the trace's threads whose launch ends the gap, else the main one; -1 where there is none
    by_doing: Ints  # shape (gaps, Doing)
    latency: Ints  # from the return of the launching call to the begin of the operation, as far as a launch takes
    stalled: Ints  # what is longer than that
    queued: Ints  # the operation had been launched before the gap began
    sync_bubble: Ints  # the part of dispatching and latency that a wait caused; contained in those


def find_gaps(trace: Trace, idle: Spans, host: HostTimeline) -> Gaps:
    """Splits the idle time of the trace's device."""
    ops, calls = trace.device_ops, trace.calls
    first = np.minimum(np.searchsorted(ops.start, idle.ends, side="left"), len(ops) - 1)
    known = (ops.start[first] == idle.ends) & ops.launched[first]
    returned = np.where(known, calls.end[ops.call[first]] if len(calls) else 0, idle.ends)
    queued = known & (returned <= idle.starts)
    until = np.where(queued, idle.starts, np.minimum(returned, idle.ends))
    fallback = -1 if host.main_thread is None else host.main_thread
    thread = np.where(known, calls.thread[ops.call[first]] if len(calls) else 0, fallback)
    late = np.where(queued, 0, idle.ends - until)
    latency = np.where(late > LONGEST_LATENCY_NS, USUAL_LATENCY_NS, late)
    gaps = Gaps(
        begin=idle.starts,
        end=idle.ends,
        thread=thread,
        by_doing=_split(idle.starts, until, thread, host),
        latency=latency,
        stalled=late - latency,
        queued=np.where(queued, idle.ends - idle.starts, 0),
        sync_bubble=np.zeros(len(idle), np.int64),
    )
    _charge_bubbles(gaps, _waits(trace.all_device_ops, calls), host)
    return gaps


def _split(begin: Ints, until: Ints, thread: Ints, host: HostTimeline) -> Ints:
    """Time of each [begin, until) by what the gap's thread did."""
    parts = np.zeros((len(begin), len(Doing)), np.int64)
    for one in np.unique(thread).tolist():
        rows = thread == one
        if one >= 0:
            for doing, spans in host.doings(one).items():
                parts[rows, doing] = spans.covered(begin[rows], until[rows])
        parts[rows, Doing.OTHER] = (until - begin)[rows] - parts[rows, : Doing.OTHER].sum(axis=1)
    return parts


def _waits(ops: DeviceOps, calls: Calls) -> Iterator[tuple[int, int]]:
    """When each wait was over and how long it was, in ns and in order of time.

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
    copied = (calls.role == Role.COPY) & (length > BLOCKING_CALL_NS) & (own_start < calls.end)
    over = np.where(copied, np.maximum(calls.end, own_end), calls.end)
    rows = np.flatnonzero(synced | copied)
    yield from zip(over[rows].tolist(), length[rows].tolist(), strict=True)


def _charge_bubbles(gaps: Gaps, waits: Iterator[tuple[int, int]], host: HostTimeline) -> None:
    """Fills `sync_bubble`, wait by wait in order of time; a gap's time is charged once."""
    for over, length in waits:
        gap = int(np.searchsorted(gaps.end, over, side="right"))
        if gap < len(gaps.begin) and gaps.begin[gap] > over + RETURN_LAG_NS:
            continue  # the device was still busy when the host went on: the wait cost nothing
        budget = length
        while gap < len(gaps.begin) and budget > 0:
            budget = _charge(gaps, gap, max(over, int(gaps.begin[gap])), budget, host)
            gap += 1


def _charge(gaps: Gaps, gap: int, begin: int, budget: int, host: HostTimeline) -> int:
    """Charges what the host dispatched within `budget` ns from `begin` on, and returns what is left of the budget."""
    until = int(gaps.begin[gap] + gaps.by_doing[gap].sum())
    stop = max(min(until, begin + budget), begin)
    thread = int(gaps.thread[gap])
    dispatched = int(host.doings(thread)[Doing.DISPATCH].covered(begin, stop)) if thread >= 0 else 0
    left = budget - (stop - begin)
    latency = min(left, int(gaps.latency[gap]))
    room = int(gaps.by_doing[gap, Doing.DISPATCH] + gaps.latency[gap])
    gaps.sync_bubble[gap] = min(gaps.sync_bubble[gap] + dispatched + latency, room)
    return left - latency
