"""Charges waits with the idle dispatching behind them.

When the host waits until the device has run dry, the device stays idle while the host dispatches again. Without the
wait the host would have done the work behind it that much earlier, and no more: so the first idle time behind the
return of the call, up to the length of the wait, is the wait's. Whatever the host does in that time uses the length up;
only dispatching is charged to the wait, the rest keeps its owner.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity, HostTimeline
from tb_bottleneck.intervals import Spans
from tb_bottleneck.trace.table import Ints, Table, column

# A wait and the end of what it waited for lie this close (the return of a synchronising call takes a few us).
RETURN_LAG_NS = 20_000
# Waits of one thread follow each other, so a training has few pairs; a hostile file may have a wait per thread for each
# of a million gaps. What lies beyond is charged to nobody.
MOST_PAIRS = 4_000_000
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class SyncCosts(Table):
    """Calls that blocked until a device had done something, in order of time."""

    call: Ints = column("row of calls", "the blocking call")
    over: Ints = column("ns", "when the host could go on: the return, or the end of the call's own copy")
    length: Ints = column("ns", "how long the call waited: its time, without what such a call takes anyway")
    charged: Ints = column("ns", "idle dispatching behind the call that the wait caused")


@dataclass(frozen=True, eq=False)
class ChargeableGaps:
    """What the gaps of a window can be charged with; arrays by gap, in ns, but for the last."""

    idle: Spans
    until: Ints  # when the launching call returned; the rest of the gap is latency
    thread: Ints  # row of the trace's threads that dispatched; -1 where there is none
    room: Ints  # what may be charged: dispatching and latency
    latency: Ints
    frees: Ints  # begins of the calls that give memory back, sorted: they wait too, whatever waited before


@dataclass(frozen=True, eq=False)
class _Pairs(Table):
    """A wait and a gap behind it, in order of waits, then gaps."""

    wait: Ints = column("row of waits", "who pays")
    gap: Ints = column("row of gaps", "for what")
    begin: Ints = column("ns", "from when on")
    budget: Ints = column("ns", "how much of the wait's length is left then")


def charge(gaps: ChargeableGaps, host: HostTimeline, call: Ints, over: Ints, length: Ints) -> tuple[SyncCosts, Ints]:
    """The waits with what each is charged, and what each gap is charged. Waits are in order of time."""
    pairs = _pairs(gaps, over, length)
    amount = _amounts(gaps, host, pairs)
    # What a gap has room for goes to its waits in their order.
    order = np.argsort(pairs.gap, kind="stable")
    gap, amount = pairs.gap[order], amount[order]
    total = np.cumsum(amount)
    first = np.searchsorted(gap, gap)
    reached = total - (total[first] - amount[first])
    room = gaps.room[gap]
    paid = np.minimum(reached, room) - np.minimum(reached - amount, room)
    by_wait, by_gap = np.zeros(len(over), np.int64), np.zeros(len(gaps.idle), np.int64)
    np.add.at(by_wait, pairs.wait[order], paid)
    np.add.at(by_gap, gap, paid)
    return SyncCosts(call=call, over=over, length=length, charged=by_wait), by_gap


def _pairs(gaps: ChargeableGaps, over: Ints, length: Ints) -> _Pairs:
    """Each wait with the gaps that its length reaches, up to the next call that waits whatever was before."""
    starts = gaps.idle.starts
    first = np.searchsorted(gaps.idle.ends, over, side="right")
    limits = np.append(gaps.frees, NEVER)[np.searchsorted(gaps.frees, over)]
    behind = np.append(starts, NEVER)[first]
    # Where the device was still busy when the host went on, the wait cost nothing.
    wait = np.flatnonzero((behind <= over + RETURN_LAG_NS) & (behind < limits) & (length > 0))
    first, limits, budget = first[wait], limits[wait], length[wait]
    begin = np.maximum(over[wait], starts[first])
    left = budget - _used(gaps, first, begin, budget)
    # Behind the first gap whole ones follow. Those that take nothing of the budget are passed over.
    takes = gaps.until - starts + gaps.latency
    taking = np.flatnonzero(takes > 0)
    before = np.concatenate(([0], np.cumsum(takes[taking])))
    at = np.searchsorted(taking, first + 1)
    reach = np.minimum(np.searchsorted(before[:-1], before[at] + left), np.searchsorted(starts[taking], limits))
    count = np.clip(reach - at, 0, MOST_PAIRS // max(len(wait), 1))
    each = np.repeat(np.arange(len(wait)), count)
    place = at[each] + np.arange(len(each)) - np.repeat(np.cumsum(count) - count, count)
    gap = np.concatenate((first, taking[place]))
    rows = np.concatenate((np.arange(len(wait)), each))
    order = np.argsort(rows, kind="stable")
    return _Pairs(
        wait=wait[rows][order],
        gap=gap[order],
        begin=np.concatenate((begin, starts[taking[place]]))[order],
        budget=np.concatenate((budget, left[each] - (before[place] - before[at[each]])))[order],
    )


def _used(gaps: ChargeableGaps, gap: Ints, begin: Ints, budget: Ints) -> Ints:
    """How much of a budget a gap uses up from a time on."""
    host: Ints = np.clip(gaps.until[gap] - begin, 0, budget)
    latency: Ints = np.minimum(budget - host, gaps.latency[gap])
    return host + latency


def _amounts(gaps: ChargeableGaps, host: HostTimeline, pairs: _Pairs) -> Ints:
    """What of each pair's budget goes into dispatching and latency."""
    used: Ints = np.clip(gaps.until[pairs.gap] - pairs.begin, 0, pairs.budget)
    amount: Ints = np.minimum(pairs.budget - used, gaps.latency[pairs.gap])
    for rows, activities in host.by_thread_group(gaps.thread[pairs.gap]):
        begin = pairs.begin[rows]
        amount[rows] += activities[Activity.DISPATCH].covered(begin, begin + used[rows])
    return amount
