"""Divides the duration of each communication into waiting and transfer. The rank that arrives last does not wait.

A pair is the set of rows (one per rank) of one operation. If the ranks of a pair share a clock, or their clocks are
aligned well enough, the transfer of a rank is the time from the last arrival to the end of the row of this rank.
Otherwise, the transfer is the shortest duration in the pair, which needs no clocks. If members of a group were not
recorded, all recorded members may have waited. Then, the transfer is at most the fastest tenth of the times of the same
operation in this group and in complete groups of the same kind and size.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_bottleneck.jobs.pairing.clocks import Clocks
from tb_bottleneck.jobs.pairing.job_table import JobTable
from tb_bottleneck.jobs.pairing.pairs import P2P, Pairs
from tb_bottleneck.jobs.replay.waits import RankPoints
from tb_bottleneck.trace.table import Bools, Floats, Ints

_FAST_SHARE = 0.1
# Largest uncertainty of the clocks, as a share of the shortest duration in the pair that is measured with them.
MAX_CLOCK_ERROR = 0.25
# Quantile of the durations of a message of an unrecorded stage over the steps. If microbatches are equal, the message
# takes as long as in the fastest quarter of the steps. Chosen: with stages 0 and 2 of 4 recorded, simulated gains are
# then up to 4 % too high, and 8 % with zero bubble (ZB-H1).
EARLY_SHARE = 0.25


@dataclass(frozen=True, eq=False)
class WireTimes:
    """The duration of each row (a communication of one rank), divided into waiting and transfer, in ns.

    `wire` is the wire time, in which the data is transferred; `wait` is the remaining time, in which the rank waits for
    others. The wait of a row without a pair is 0. For each pair, `last` is the row that arrived last, and `complete` is
    True if all ranks of the operation were recorded.
    """

    wire: Floats
    wait: Floats
    last: Ints
    complete: Bools


def wire_times_of(job: JobTable, pairs: Pairs, clocks: Clocks, hosts: Ints, kinds: Sequence[str]) -> WireTimes:
    """Returns the wire time (time of the transfer) and the wait of each row (see the module docstring).

    `hosts` has the number of the host of each rank, or -1 if it is not known. `kinds` has the kind of each process
    group, such as "data".
    """
    rows = job.rows
    duration = (rows.end - rows.start).astype(np.float64)
    paired = np.flatnonzero(pairs.pair >= 0)
    pair = pairs.pair[paired]
    shortest, size = np.full(pairs.count, np.inf), np.bincount(pair, minlength=pairs.count)
    np.minimum.at(shortest, pair, duration[paired])
    arrival, end = clocks.aligned(rows.rank, rows.start), clocks.aligned(rows.rank, rows.end)
    latest = np.full(pairs.count, -np.inf)
    np.maximum.at(latest, pair, arrival[paired])
    on_clock = _on_clock(pairs, paired, hosts[rows.rank[paired]], shortest, clocks)
    order = paired[np.lexsort((np.where(on_clock[pair], -arrival[paired], duration[paired]), pair))]
    _, first = np.unique(pairs.pair[order], return_index=True)
    last = order[first] if len(order) else order
    complete = size >= _sizes(job)[last] if len(last) else np.zeros(0, np.bool_)
    fast = np.where(complete, shortest, np.minimum(shortest, _fast(job, last, shortest, complete, kinds)))
    since = np.clip(end[paired] - latest[pair], 0.0, duration[paired])
    wire = duration.copy()
    wire[paired] = np.where((on_clock & complete)[pair], since, fast[pair])
    return WireTimes(wire, np.maximum(duration - wire, 0.0), last, complete)


def unpaired_transfers(job: JobTable, pairs: Pairs, kinds: Sequence[str]) -> tuple[Ints, Floats]:
    """Returns the rows of the operations in which only one rank was recorded, and the estimated times of their
    transfers in ns.

    The recorded rank may have waited for another one. Therefore, the estimate is at most the 10 % quantile of the
    durations of the same operation and size in groups of the same kind. Sends and receives count as one operation.
    `kinds` has the kind of each process group.
    """
    rows = np.flatnonzero((pairs.pair < 0) & (_sizes(job) > 1))
    if not len(rows):
        return rows, np.empty(0)
    duration = (job.rows.end - job.rows.start)[rows].astype(np.float64)
    role = np.unique(kinds or ("",), return_inverse=True)[1][job.rows.group[rows]]
    operation = np.where(np.isin(job.rows.operation[rows], P2P), P2P[0], job.rows.operation[rows])
    fast = _fast_of(duration, np.ones(len(rows), np.bool_), role, operation, job.rows.bytes[rows])
    return rows, np.minimum(duration, fast)


def times_at_places(job: JobTable, rows: Ints, share: float) -> Floats:
    """Returns for each of the messages `rows` a time in ns: the quantile `share` (0 to 1) of the durations of the
    corresponding messages in all steps; 0.5 is the lower median.

    Corresponding messages are the n-th ones of each step that a rank sends to, or receives from, the same other rank.
    """
    if not len(rows):
        return np.empty(0)
    mine, count = job.rows.take(rows), np.arange(len(rows))
    keys = np.stack((mine.rank, mine.operation, mine.peer))
    order = np.lexsort((mine.order, mine.step, *keys))
    new_lane = np.any(np.diff(keys[:, order], prepend=-2) != 0, axis=0)
    new_step = new_lane | (np.diff(mine.step[order], prepend=-2) != 0)
    number, lane = count - np.maximum.accumulate(np.where(new_step, count, 0)), np.cumsum(new_lane) - 1
    longest = np.zeros(lane[-1] + 1, np.int64)
    np.maximum.at(longest, lane, number + 1)
    place, time = (np.cumsum(longest) - longest)[lane] + number, (mine.end - mine.start)[order].astype(np.float64)
    sorted_times, size = time[np.lexsort((time, place))], np.bincount(place)
    chosen = np.cumsum(size) - size + np.floor((size - 1) * share).astype(np.int64)
    times = np.empty(len(rows))
    times[order] = sorted_times[chosen][place]
    return times


def limited_by_progress(wires: WireTimes, job: JobTable, pairs: Pairs, clocks: Clocks, points: RankPoints) -> WireTimes:
    """Returns the wire times (times of transfers), with a limit for collectives that a rank did not wait for although
    most other ranks did.

    points_of_job adds a wait of length 0 for such a rank. The collective had ended before this wait, so its wire time
    is at most the time from the arrival of the last rank to this wait. The recorded end can be later: if Gloo's thread
    loses its core, it records the end late.
    """
    added = np.flatnonzero(points.added)
    row = points.row[added]
    arrival = clocks.aligned(job.rows.rank, job.rows.start)
    latest = np.full(pairs.count, -np.inf)
    paired = pairs.pair >= 0
    np.maximum.at(latest, pairs.pair[paired], arrival[paired])
    begin = np.array([summary.facts.begin_ns for summary in job.summaries], np.int64)[points.rank[added]]
    continued = clocks.aligned(points.rank[added], begin + points.reached[added].astype(np.int64))
    wire = wires.wire.copy()
    wire[row] = np.minimum(wire[row], np.maximum(continued - latest[pairs.pair[row]], 0.0))
    return replace(wires, wire=wire)


def _on_clock(pairs: Pairs, paired: Ints, host: Ints, shortest: Floats, clocks: Clocks) -> Bools:
    """Returns a mask of the pairs whose ranks share a clock, or in which the clock error is at most MAX_CLOCK_ERROR of
    the shortest duration.

    `paired` are the rows with a pair, `host` has the host of each of them. `shortest` has the shortest duration (ns) in
    each pair.
    """
    low, high = np.full(pairs.count, np.iinfo(np.int64).max), np.full(pairs.count, -1)
    np.minimum.at(low, pairs.pair[paired], host)
    np.maximum.at(high, pairs.pair[paired], host)
    exact = clocks.error is not None
    error = clocks.error if clocks.error is not None else 0.0
    return np.asarray((low == high) & (low >= 0) | (exact & (error <= MAX_CLOCK_ERROR * shortest)), np.bool_)


def _sizes(job: JobTable) -> Ints:
    """Returns for each row the number of ranks that take part in its operation."""
    groups = [group.size or len(group.ranks) or job.world_size for group in job.groups]
    size = np.array(groups or [0], np.int64)[job.rows.group] if len(job.rows) else np.zeros(0, np.int64)
    return np.where(np.isin(job.rows.operation, P2P), 2, size)


def _fast(job: JobTable, last: Ints, shortest: Floats, complete: Bools, kinds: Sequence[str]) -> Floats:
    """Returns for each pair the 10 % quantile (ns) of `shortest` over the pairs with the same operation and bytes: in
    the same group, or in completely recorded groups of the same kind and size if that is less.

    `last`, `shortest` and `complete` have one value per pair: a row, the shortest duration in ns, and whether all ranks
    were recorded.
    """
    rows, size = job.rows, _sizes(job)
    role = np.unique(kinds or ("",), return_inverse=True)[1][rows.group[last]]
    alike = (rows.operation[last], rows.bytes[last])
    fast = np.minimum(
        _fast_of(shortest, np.ones_like(complete), rows.group[last], *alike),
        _fast_of(shortest, complete, role, size[last], *alike),
    )
    return np.asarray(fast, np.float64)


def _fast_of(shortest: Floats, counted: Bools, *keys: Ints) -> Floats:
    """Returns for each element the 10 % quantile of `shortest` (ns) over the elements in the mask `counted` that have
    the same values in all `keys`; inf if there are none."""
    _, kind = np.unique(np.stack(keys), axis=1, return_inverse=True)
    kind = kind.ravel()
    used = np.flatnonzero(counted)
    ordered = shortest[used[np.lexsort((shortest[used], kind[used]))]]
    size = np.bincount(kind[used], minlength=int(kind.max(initial=-1)) + 1)
    fast, known = np.full(len(size), np.inf), size > 0
    place = (np.cumsum(size) - size)[known] + (size[known] - 1) * _FAST_SHARE
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, np.cumsum(size)[known] - 1)
    fast[known] = ordered[low] + (ordered[high] - ordered[low]) * (place - low)
    return fast[kind]
