"""Charges idle time of the device after a synchronising call to that call.

If the host waits until the device has finished all work, the device stays idle while the host dispatches the next work.
Without the wait, the host would have dispatched this work earlier, by at most the length of the wait. Therefore, at
most as much idle time as the wait was long is charged to the wait: this is the budget of the wait. After the call
returns, all idle time reduces the budget. Of this idle time, only dispatching and launch latency are charged to the
wait; the time of other activities keeps the regime of the activity.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity, HostTimeline
from tb_bottleneck.base.intervals import Spans
from tb_bottleneck.base.measure import Record
from tb_bottleneck.trace.table import Ints, Table, column

# Largest time between the end of a wait and the end of the work that the wait is for. (The return takes a few us.)
RETURN_LAG_NS = 20_000
# Largest number of pairs of a wait and a gap that its budget reaches. The waits of one thread follow each other, so a
# training has few pairs. A malicious file may have a wait per thread for each of a million gaps. Pairs beyond this
# limit are not charged.
MAX_PAIRS = 4_000_000
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class SyncCosts(Table):
    """Calls that waited until a device had finished its work, in order of time, with the cost of each wait."""

    call: Ints = column("row of calls", "the blocking call")
    over: Ints = column("ns", "when the host continued: the return, or the end of the call's own copy")
    length: Ints = column("ns", "how long the call waited: its duration without the time that such a call takes anyway")
    charged: Ints = column("ns", "idle launch time after the call that the wait caused")


class ChargeableGaps(Record, frozen=True, eq=False):
    """The idle gaps of a window, with the time in each gap that can be charged to waits.

    Times are in ns. All arrays have one element per gap, except `frees`.
    """

    idle: Spans
    until: Ints  # when the launching call returned; the rest of the gap is latency
    thread: Ints  # row of the trace's threads that dispatched; -1 for none
    limit: Ints  # time that may be charged: dispatching and latency
    latency: Ints
    frees: Ints  # sorted start times of the calls that free memory, which always wait


@dataclass(frozen=True, eq=False)
class _Pairs(Table):
    """One row per pair of a wait and an idle gap that the budget of the wait reaches, in order of waits, then gaps."""

    wait: Ints = column("row of waits", "the wait that is charged")
    gap: Ints = column("row of gaps", "the gap")
    begin: Ints = column("ns", "start of the time in the gap that can be charged")
    budget: Ints = column("ns", "remaining budget of the wait at that time")


def charge(gaps: ChargeableGaps, host: HostTimeline, call: Ints, over: Ints, length: Ints) -> tuple[SyncCosts, Ints]:
    """Returns the table of the waits with the time charged to each, and an array with the charged ns of each gap.

    `call`, `over` and `length` are the columns of SyncCosts with these names. They describe the waits in order of time.
    """
    pairs = _pairs(gaps, over, length)
    amount = _amounts(gaps, host, pairs)
    # The chargeable time of a gap is charged to its waits in their order.
    order = np.argsort(pairs.gap, kind="stable")
    gap, amount = pairs.gap[order], amount[order]
    total = np.cumsum(amount)
    first = np.searchsorted(gap, gap)
    reached = total - (total[first] - amount[first])
    limit = gaps.limit[gap]
    charged = np.minimum(reached, limit) - np.minimum(reached - amount, limit)
    by_wait, by_gap = np.zeros(len(over), np.int64), np.zeros(len(gaps.idle), np.int64)
    np.add.at(by_wait, pairs.wait[order], charged)
    np.add.at(by_gap, gap, charged)
    return SyncCosts(call=call, over=over, length=length, charged=by_wait), by_gap


def _pairs(gaps: ChargeableGaps, over: Ints, length: Ints) -> _Pairs:
    """Returns the pairs of each wait and the gaps that its budget reaches before the next call that frees memory.

    `over` and `length` are the columns of SyncCosts with these names.
    """
    starts = gaps.idle.starts
    first = np.searchsorted(gaps.idle.ends, over, side="right")
    limits = np.append(gaps.frees, NEVER)[np.searchsorted(gaps.frees, over)]
    next_gap = np.append(starts, NEVER)[first]
    # If the device was still busy when the host continued, the wait cost nothing.
    wait = np.flatnonzero((next_gap <= over + RETURN_LAG_NS) & (next_gap < limits) & (length > 0))
    first, limits, budget = first[wait], limits[wait], length[wait]
    begin = np.maximum(over[wait], starts[first])
    left = budget - _used(gaps, first, begin, budget)
    # After the first gap, complete gaps follow; gaps that use none of the budget are skipped.
    usage = gaps.until - starts + gaps.latency
    using = np.flatnonzero(usage > 0)
    before = np.concatenate(([0], np.cumsum(usage[using])))
    at = np.searchsorted(using, first + 1)
    reach = np.minimum(np.searchsorted(before[:-1], before[at] + left), np.searchsorted(starts[using], limits))
    count = np.clip(reach - at, 0, MAX_PAIRS // max(len(wait), 1))
    pair = np.repeat(np.arange(len(wait)), count)
    place = at[pair] + np.arange(len(pair)) - np.repeat(np.cumsum(count) - count, count)
    gap = np.concatenate((first, using[place]))
    rows = np.concatenate((np.arange(len(wait)), pair))
    order = np.argsort(rows, kind="stable")
    return _Pairs(
        wait=wait[rows][order],
        gap=gap[order],
        begin=np.concatenate((begin, starts[using[place]]))[order],
        budget=np.concatenate((budget, left[pair] - (before[place] - before[at[pair]])))[order],
    )


def _used(gaps: ChargeableGaps, gap: Ints, begin: Ints, budget: Ints) -> Ints:
    """Returns for each pair of a wait and a gap by how much (ns) the gap reduces the wait's `budget` (ns): by the time
    from `begin` (ns) to the return of the launching call, and by the launch latency.

    `gap` has the index in `gaps` for each pair.
    """
    host: Ints = np.clip(gaps.until[gap] - begin, 0, budget)
    latency: Ints = np.minimum(budget - host, gaps.latency[gap])
    return host + latency


def _amounts(gaps: ChargeableGaps, host: HostTimeline, pairs: _Pairs) -> Ints:
    """Returns for each pair the part of the wait's budget, in ns, that dispatching and launch latency use up."""
    used: Ints = np.clip(gaps.until[pairs.gap] - pairs.begin, 0, pairs.budget)
    amount: Ints = np.minimum(pairs.budget - used, gaps.latency[pairs.gap])
    for rows, activities in host.by_thread_group(gaps.thread[pairs.gap]):
        begin = pairs.begin[rows]
        amount[rows] += activities[Activity.DISPATCH].covered(begin, begin + used[rows])
    return amount
