"""Who owns the time in which the device is idle: each gap is followed to the launch that ends it, and to its thread.

For a gap [begin, end) that ends with an operation whose call returned at r:
- r <= begin: the work was queued, the device itself was late: `queued`;
- r > begin: the host was late. [begin, r) is split by what the launching thread did then (measures/doing.py), and
  [r, end) is the latency of a launch, up to LONGEST_LATENCY_NS; the device was kept by something else after that.
A gap that no recorded launch ends (the last one of the window, or a launch API that the profiler does not know) is
split by what the main launching thread did.

Sync bubbles: when the host waits until the device has run dry, the device stays idle while the host dispatches again.
Without the wait the host would have done the work behind it that much earlier, and no more: so the first idle time
behind the return of the call, up to the length of the wait, is the wait's. Whatever the host does in that time uses the
length up; only dispatching is charged to the wait, the rest keeps its owner.
"""

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


@dataclass(frozen=True, eq=False)
class Gaps:
    """The idle gaps of a window, in ns per gap and owner: they sum to end - begin.

    `sync_bubble` is contained in the dispatching and the latency.
    """

    begin: Ints
    end: Ints
    thread: Ints  # row of the trace's threads whose launch ends the gap, else the main one; -1 where there is none
    by_doing: Ints  # shape (gaps, Doing)
    latency: Ints  # from the return of the launching call to the begin of the operation, at most LONGEST_LATENCY_NS
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
    gaps = Gaps(
        begin=idle.starts,
        end=idle.ends,
        thread=thread,
        by_doing=_split(idle.starts, until, thread, host),
        latency=np.minimum(late, LONGEST_LATENCY_NS),
        stalled=np.maximum(late - LONGEST_LATENCY_NS, 0),
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


def _waits(ops: DeviceOps, calls: Calls) -> Calls:
    """Calls that blocked until a device had finished something: an operation of any device ended inside the call.

    Its end may seem to lie a little behind the return: the device's clock and whole-microsecond stamps are that
    inexact.
    """
    rows = calls.of(Role.WAIT, Role.COPY)
    rows = rows.take(rows.end - rows.start > BLOCKING_CALL_NS)
    ends = np.sort(ops.end)
    latest = np.searchsorted(ends, rows.end + RETURN_LAG_NS, side="right") - 1
    waited = (latest >= 0) & (ends[np.maximum(latest, 0)] > rows.start)
    return rows.take(waited)


def _charge_bubbles(gaps: Gaps, waits: Calls, host: HostTimeline) -> None:
    """Fills `sync_bubble`, wait by wait in order of time; a gap's time is charged once."""
    for returned, length in zip(waits.end.tolist(), (waits.end - waits.start).tolist(), strict=True):
        gap = int(np.searchsorted(gaps.end, returned, side="right"))
        if gap < len(gaps.begin) and gaps.begin[gap] > returned + RETURN_LAG_NS:
            continue  # the device was still busy when the host went on: the wait cost nothing
        budget = length
        while gap < len(gaps.begin) and budget > 0:
            budget = _charge(gaps, gap, max(returned, int(gaps.begin[gap])), budget, host)
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
