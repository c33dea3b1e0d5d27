"""Aligns the clocks of the hosts: all ranks leave a synchronising collective at about the same time.

The ranks of a host share its clock. Groups with ranks on several hosts connect the clocks. A pair is the set of rows
(one per rank) of one operation. Starting with one clock, each clock is set by the pairs that it shares with clocks that
are already set. Then, the offsets are refined in rounds: each round adds to the offset of a clock the median of (end of
a row on this clock - mean end of its pair). If a recording is long, a drift is fitted, too. The clocks are not aligned
if pairs do not connect all hosts, if there are too few pairs, or if a clock was set during the recording.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.jobs.pairing.job_table import JobTable
from tb_bottleneck.jobs.pairing.pairs import Pairs
from tb_bottleneck.jobs.summary.rank_summary import Operation
from tb_bottleneck.trace.table import Bools, Floats, Ints

# Collectives with fewer bytes count as small. Small collectives end within some microseconds of each other on all
# ranks, large ones within 0.1 to 0.6 ms (TraceLens, tests/traces/mi300/llama_70b_fsdp).
SMALL_MESSAGE_BYTES = 64 << 10
MIN_COLLECTIVES = 8
# A drift is fitted only to recordings that are long enough to show it.
MIN_DRIFT_SPAN_NS, MIN_DRIFT_COLLECTIVES = NS_PER_S, 20
# Quartz oscillators drift by at most 100 ppm. A larger drift means that the clock was set.
MAX_DRIFT = 100e-6
# Largest plausible time from the first end to the last recorded start in a pair of collective kernels, and in a pair of
# Gloo rows. A kernel's times are exact to some hundred ns. A row of Gloo begins after its rank has arrived, on a busy
# machine milliseconds later.
LATE_KERNEL_NS, LATE_ROW_NS = 1_000.0, 5_000_000.0
# All ranks leave a collective within 0.6 ms (see above), or within some milliseconds with Gloo. If the ends of a pair
# are this many times further apart than those of the closest quarter of the pairs, its rows belong to different
# collectives.
MAX_APART = 10.0
_ROUNDS, _DRIFT_ROUNDS = 200, 20
_CONVERGED_NS, _CONVERGED_DRIFT = 10.0, 1e-8
SYNCHRONISING = tuple(int(operation) for operation in Operation if operation.synchronises)


@dataclass(frozen=True, eq=False)
class Clocks:
    """The offsets of the ranks' clocks from the common clock of the job.

    The offset of a rank in ns is `offset` at the time `origin` (ns since 1970), plus `drift` per ns after `origin`.
    This offset is subtracted from the times of the rank to obtain times on the common clock. `error` is the uncertainty
    in ns: the 90th percentile of the remaining differences between the ends of a collective, without outliers; 0 if all
    ranks share one clock. `error` is None if the clocks cannot be aligned. Then, `because` is the key of the reason,
    and the offsets are only estimates.
    """

    offset: Floats
    drift: Floats
    origin: int
    error: float | None
    because: str = ""

    def aligned(self, rank: Ints, times: Ints) -> Floats:
        """Returns `times` (ns since 1970 on the clocks of the ranks) as times in ns since `origin` on the common clock.

        `rank` has for each time the position of its rank among the recorded ranks.
        """
        since = (times - self.origin).astype(np.float64)
        return since - self.offset[rank] - self.drift[rank] * since


def hosts_of(job: JobTable) -> Ints:
    """Returns the number of the host of each recorded rank, from 0 in order of the lowest rank; -1 if it is not known.

    If no host has a name, hosts follow from the number of ranks per host (LOCAL_WORLD_SIZE): torchrun gives each host
    that many consecutive ranks (torch/distributed/elastic/agent/server/api.py, `_assign_worker_ranks`).
    """
    facts = [summary.facts for summary in job.summaries]
    names = [fact.host for fact in facts]
    local_size = facts[0].local_size if facts else 0
    if local_size and not any(names) and all(fact.local_size == local_size for fact in facts):
        return np.unique(np.array(job.ranks, np.int64) // local_size, return_inverse=True)[1].astype(np.int64)
    number = {name: position for position, name in enumerate(dict.fromkeys(name for name in names if name))}
    return np.array([number.get(name, -1) for name in names], np.int64)


def align_clocks(job: JobTable, pairs: Pairs) -> Clocks:
    """Returns the offsets of the ranks' clocks, from the ends of the collectives in `pairs` (see the module docstring).

    If the clocks cannot be aligned, returns estimates with `error` None.
    """
    hosts = hosts_of(job)
    clock = np.where(hosts >= 0, hosts, hosts.max(initial=-1) + 1 + np.arange(len(hosts)))
    rows, origin = job.rows, int(job.rows.end.min()) if len(job.rows) else 0
    count = int(clock.max(initial=0)) + 1
    if count == 1:
        return Clocks(np.zeros(len(clock)), np.zeros(len(clock)), origin, 0.0)
    used = _usable(job, pairs, clock, count)
    end = (rows.end[used] - origin).astype(np.float64)
    pair, mine = pairs.pair[used], clock[rows.rank[used]]
    offset = _offsets(end, pair, mine, count)
    drift = _drifts(end - offset[mine], pair, mine, count)
    stepped = bool(np.abs(drift).max(initial=0.0) > MAX_DRIFT)
    if stepped:
        drift = np.zeros(count)  # not a drift, but a step of a clock, or ends that differ by much
    offset = _offsets(end - drift[mine] * end, pair, mine, count)
    residual = _residuals(end - offset[mine] - drift[mine] * end, pair)
    because = _refusal(pair, mine, count, stepped)
    if because == "hosts_not_connected" and job.numbered:
        offset = _with_steps(job, clock, offset, _labels(pair, mine, count), origin)
    return Clocks(offset[clock], drift[clock], origin, _error(np.abs(residual)) if not because else None, because)


def _error(residual: Floats) -> float | None:
    """Returns the 90th percentile of `residual` (ns, not negative); None if it is empty. Values above MAX_APART times
    the median are left out, because these rows belong to different collectives."""
    if not len(residual):
        return None
    return float(np.percentile(residual[residual <= MAX_APART * np.median(residual)], 90))


def contradicted(job: JobTable, pairs: Pairs, clocks: Clocks) -> Bools:
    """Returns a mask of the pairs that are wrong: a rank leaves a synchronising collective clearly before another rank
    arrives.

    If collectives were paired by their order (level "order" or "size"), a pair is also wrong if its ranks leave far
    apart in time, the ranks of other pairs leave together, and one of its rows ends nearer to another pair (see
    _fits_another). Pairs of ranks with different clocks are judged only if these clocks are aligned.
    """
    rows, hosts = job.rows, hosts_of(job)
    used = (pairs.pair >= 0) & np.isin(rows.operation, SYNCHRONISING)
    pair, host = pairs.pair[used], hosts[rows.rank[used]]
    arrival, end = (clocks.aligned(rows.rank, times)[used] for times in (rows.start, rows.end))
    (earliest, left), (_, latest) = (_extremes(values, pair, pairs.count) for values in (end, arrival))
    low, high = _extremes(host.astype(np.float64), pair, pairs.count)
    late = LATE_ROW_NS if any(summary.facts.backend == "gloo" for summary in job.summaries) else LATE_KERNEL_NS
    across = np.inf if clocks.error is None else late + 4 * clocks.error
    wrong = latest - earliest > np.where((low == high) & (low >= 0), late, across)
    if pairs.level in ("order", "size") and len(pair) and not clocks.because:
        apart = np.where(np.isfinite(left), left - earliest, 0.0)
        usual = float(np.quantile(apart[np.isfinite(left)], 0.25))  # up to three quarters of the pairs may be wrong
        unlike = apart > max(LATE_ROW_NS, MAX_APART * usual)
        wrong |= unlike & _fits_another(end, pair, rows.group[used], pairs.count)
    return np.asarray(wrong, np.bool_)


def _fits_another(end: Floats, pair: Ints, group: Ints, count: int) -> Bools:
    """Returns a mask of the `count` pairs in which the end of a row is nearer to the median end of another pair of the
    same group than to that of its own pair. If no row of a pair ends nearer to another pair, the late row was only
    delayed, and the pair may be right.

    `end` (ns), `pair` and `group` have one value per row.
    """
    middle, groups = _medians(end, pair, count), np.zeros(count, np.int64)
    groups[pair] = group
    found = np.zeros(count, np.bool_)
    for number in np.unique(groups[pair]):
        mine, known = group == number, np.unique(pair[group == number])
        ends, own = np.sort(middle[known]), middle[pair[mine]]
        after = np.searchsorted(ends, end[mine])
        nearest = np.minimum(*(np.abs(ends[np.clip(after - step, 0, len(ends) - 1)] - end[mine]) for step in (0, 1)))
        found[pair[mine][nearest < np.abs(end[mine] - own)]] = True
    return found


def _extremes(values: Floats, classes: Ints, count: int) -> tuple[Floats, Floats]:
    """Returns the smallest and the largest value of each of the `count` classes; inf and -inf for a class without
    values. `values` and `classes` have one element per value."""
    low, high = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(low, classes, values)
    np.maximum.at(high, classes, values)
    return low, high


def _usable(job: JobTable, pairs: Pairs, clock: Ints, count: int) -> Bools:
    """Returns a mask of the rows from which clocks are aligned: rows of pairs that contain ranks with different clocks.

    Small collectives are preferred, because all ranks leave them together. If small collectives do not suffice (see
    _suffices), all collectives are used; if these do not suffice either, all small rows (collectives and messages), and
    otherwise all rows. `clock` has the number of the clock of each rank, `count` is the number of clocks.
    """
    rows, paired = job.rows, pairs.pair >= 0
    mine = clock[rows.rank]
    low, high = np.full(pairs.count, count), np.full(pairs.count, -1)
    np.minimum.at(low, pairs.pair[paired], mine[paired])
    np.maximum.at(high, pairs.pair[paired], mine[paired])
    across = paired & ((high > low)[pairs.pair] if count > 1 and pairs.count else paired)
    collectives, small = np.isin(rows.operation, SYNCHRONISING), rows.bytes < SMALL_MESSAGE_BYTES
    choices = [across & collectives & small, across & collectives, across & small, across]
    return next((used for used in choices if _suffices(pairs.pair[used], mine[used], count)), choices[-1])


def _suffices(pair: Ints, clock: Ints, count: int) -> bool:
    """Returns True if the rows contain at least MIN_COLLECTIVES pairs that connect all `count` clocks. `pair` and
    `clock` have one value per row."""
    return len(np.unique(pair)) >= MIN_COLLECTIVES and _connected(pair, clock, count)


def _residuals(end: Floats, pair: Ints) -> Floats:
    """Returns for each row its end minus the mean end of its pair, in ns. `end` (ns) and `pair` have one value per
    row."""
    if not len(pair):
        return end
    count = np.maximum(np.bincount(pair), 1)
    return end - (np.bincount(pair, weights=end) / count)[pair]


def _offsets(end: Floats, pair: Ints, clock: Ints, count: int) -> Floats:
    """Returns the offset (ns) of each of the `count` clocks, relative to the first one.

    The offsets are changed in rounds until the median residual (end - mean end of the pair) of the rows of each clock
    is zero. `end` (ns), `pair` and `clock` have one value per row. These rounds need good first offsets. Otherwise,
    clocks that only few rows connect keep wrong offsets, such as those of the replicas of a pipeline, which exchange
    many messages within a replica but few collectives between replicas.
    """
    offset = _first_offsets(end, pair, clock, count)
    for _ in range(_ROUNDS if len(end) else 0):
        change = _medians(_residuals(end - offset[clock], pair), clock, count)
        offset += change
        if np.abs(change).max() < _CONVERGED_NS:
            break
    return offset - offset[0] if count else offset


def _first_offsets(end: Floats, pair: Ints, clock: Ints, count: int) -> Floats:
    """Returns rough offsets (ns) of the clocks, from which the rounds in _offsets start. The arguments are as in
    _offsets.

    The first clock has the offset 0. Each round sets the clocks that share a pair with a clock that is already set.
    Clocks that are not connected to the first one keep the offset 0.
    """
    offset, known = np.zeros(count), np.zeros(count, np.bool_)
    known[:1] = True
    while len(end):
        told = known[clock]
        rows = np.bincount(pair[told], minlength=int(pair.max()) + 1)
        mean = np.bincount(pair[told], weights=(end - offset[clock])[told], minlength=len(rows)) / np.maximum(rows, 1)
        new = ~told & (rows[pair] > 0)
        if not new.any():
            break
        found = np.bincount(clock[new], minlength=count) > 0
        offset = np.where(found, _medians((end - mean[pair])[new], clock[new], count), offset)
        known |= found
    return offset


def _medians(values: Floats, classes: Ints, count: int) -> Floats:
    """Returns the lower median of `values` in each of the `count` classes; 0 for a class without values. `classes` has
    the class of each value, from 0 to `count` - 1."""
    order = np.lexsort((values, classes))
    size = np.bincount(classes, minlength=count)
    middle = np.cumsum(size) - size + np.maximum(size - 1, 0) // 2
    return np.where(size > 0, values[order][np.minimum(middle, len(values) - 1)], 0.0)


def _drifts(end: Floats, pair: Ints, clock: Ints, count: int) -> Floats:
    """Returns the drift of each clock relative to the others, in ns per ns; 0 if the recording is too short.

    The drift is the median slope of the residuals (end - mean end of the pair) of a clock between the first and the
    second half of its rows. The arguments are as in _offsets.
    """
    drift = np.zeros(count)
    if not len(end) or end.max() - end.min() < MIN_DRIFT_SPAN_NS:
        return drift
    order = np.lexsort((end, clock))
    bounds = np.searchsorted(clock[order], np.arange(count + 1))
    for _ in range(_DRIFT_ROUNDS):
        residual, change = _residuals(end - drift[clock] * end, pair), np.zeros(count)
        for number in range(count):
            mine = order[bounds[number] : bounds[number + 1]]
            if len(mine) >= MIN_DRIFT_COLLECTIVES:
                half = len(mine) // 2
                early, late = mine[:half], mine[-half:]
                change[number] = np.median((residual[late] - residual[early]) / (end[late] - end[early]))
        drift += change
        if np.abs(change).max() < _CONVERGED_DRIFT:
            break
    return drift


def _refusal(pair: Ints, clock: Ints, count: int, stepped: bool) -> str:
    """Returns the key of the reason why the clocks cannot be aligned; empty if they can be aligned.

    `pair` and `clock` have one value per row, `count` is the number of clocks. `stepped` is True if a drift is too
    large for an oscillator, which means that a clock was set.
    """
    if not _connected(pair, clock, count):
        return "hosts_not_connected"
    if len(np.unique(pair)) < MIN_COLLECTIVES:
        return "too_few_collectives"
    return "clock_stepped" if stepped else ""


def _with_steps(job: JobTable, clock: Ints, offset: Floats, label: Ints, origin: int) -> Floats:
    """Returns `offset` (ns, one per clock), changed for sets of clocks that no pair connects with the first clock. With
    the new offsets, steps with equal numbers begin at the same mean time in all sets.

    `clock` has the clock of each rank, `label` the number of the connected set of each clock; `origin` is as in Clocks.
    The error is some milliseconds, which suffices to replay the ranks together, but not to distinguish waiting from
    transfer.
    """
    begins: dict[int, list[Floats]] = {}
    numbers = sorted(set.intersection(*(set(summary.numbers) for summary in job.summaries)))
    for number, summary in zip(clock.tolist(), job.summaries, strict=True):
        places = [summary.numbers.index(each) for each in numbers]
        begin = summary.edges[places] + (summary.facts.begin_ns - origin) - offset[number]
        begins.setdefault(int(label[number]), []).append(begin)
    if not numbers:
        return offset
    shift = np.zeros(len(offset))
    for of, each in begins.items():
        shift[label == of] = np.median(np.mean(each, axis=0) - np.mean(begins[int(label[clock[0]])], axis=0))
    return offset + shift


def _connected(pair: Ints, clock: Ints, count: int) -> bool:
    """Returns True if pairs connect all `count` clocks, directly or through other clocks. `pair` and `clock` have one
    value per row."""
    return bool((_labels(pair, clock, count) == 0).all())


def _labels(pair: Ints, clock: Ints, count: int) -> Ints:
    """Returns for each clock the lowest number of a clock that pairs connect with it, directly or through other clocks.
    `pair` and `clock` have one value per row, `count` is the number of clocks."""
    label = np.arange(count)
    for _ in range(count):
        lowest = np.full(int(pair.max(initial=0)) + 1, count)
        np.minimum.at(lowest, pair, label[clock])
        renewed = label.copy()
        np.minimum.at(renewed, clock, lowest[pair])
        if (renewed == label).all():
            break
        label = renewed
    return label
