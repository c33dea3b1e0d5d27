"""Ranks that take longer than their peers in almost every step, in total or in one kind of own time.

Own time is time without waiting for other ranks. The kind of own time that exceeds that of the peers most decides the
cause: the loader (`rank_input`), pauses (`rank_interruption`), more work (`data_imbalance`, `expert_imbalance`), slower
kernels of all kinds (`throttled_rank`), or anything else (`slow_rank`). If all ranks of one of several hosts are slow
for the same reason, the cause is the host (`slow_host`).
"""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from tb_bottleneck.base.stragglers import EXCESS_IN_MOST_STEPS, in_most_steps, lower_median
from tb_bottleneck.jobs.causes.candidates import Candidate, Fact, expert_skew, origins, work_ratio
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.own_table import MIN_SLOWER_KERNELS, all_slower, kernel_ratio, kernel_ratios
from tb_bottleneck.jobs.scenarios import Changed, even_ranks, like_peers
from tb_bottleneck.jobs.summary.rank_summary import Own
from tb_bottleneck.trace.table import Bools, Floats, Ints

# The fix of a slow rank shortens each kind of own time that is longer by more than this share of the usual own time,
# also in MOST_STEPS of the steps.
MIN_PART = 0.01
# A rank whose amount of work exceeds that of the peers by at least this share has a longer device time because of the
# work.
MIN_MORE_WORK = 0.03
# A rank is left out if its own time exceeds that of its peers by less than this part of the largest excess of a rank
# with the same cause, which decides the time of the job. A choice.
FAR_LESS = 0.2
# Experts are uneven if the largest part of an all-to-all exceeds the mean part by at least this share.
MIN_EXPERT_SKEW = 0.2


def slow_ranks(context: JobContext) -> Iterator[Candidate]:
    """Yields the candidates for ranks that take longer than their peers in most steps: one per slow host, and one per
    cause with the other ranks of this cause, without those whose excess is small (FAR_LESS)."""
    excess = np.nanmean(context.own.total - _usual_total(context), axis=1)
    by_cause: defaultdict[str, list[int]] = defaultdict(list)
    longer = _longer_kinds(context, EXCESS_IN_MOST_STEPS)
    for rank in persistent_ranks(context).tolist():
        by_cause[_cause(context, rank, longer[rank])].append(rank)
    for cause, ranks in sorted(by_cause.items()):
        hosts = _whole_hosts(context, ranks) if cause in ("slow_rank", "throttled_rank") else {}
        for host, members in sorted(hosts.items()):
            yield _candidate(context, "slow_host", members, host)
        rest = sorted(set(ranks) - {rank for members in hosts.values() for rank in members})
        largest = excess[rest].max(initial=0.0)
        rest = [rank for rank in rest if largest <= 0 or excess[rank] >= FAR_LESS * largest]
        if rest:
            yield _candidate(context, cause, rest)


def persistent_ranks(context: JobContext) -> Ints:
    """Returns the positions of the ranks that are slower than their peers in most steps (MOST_STEPS).

    Their own time (time without waiting) in total, or that of one kind, exceeds that of the peers by more than
    EXCESS_IN_MOST_STEPS of the usual own time. Each kind is also judged alone, because work that varies from step to
    step would hide a host that is always slower.
    """
    table = context.own
    usual = _usual_total(context)
    whole = in_most_steps(table.total - usual > EXCESS_IN_MOST_STEPS * usual, table.total)
    return np.flatnonzero(whole | _longer_kinds(context, EXCESS_IN_MOST_STEPS).any(axis=1))


def _longer_kinds(context: JobContext, least: float) -> Bools:
    """Returns a mask of shape (ranks, kinds): True if own time (time without waiting) of this kind alone is longer than
    usual in most steps.

    The excess (own time of the kind - that of the peers) must be larger than `least` (0 to 1) times the usual own time
    of all kinds together. Device time that the amount of work explains does not count. Host time and unexplained time
    are taken together, because recordings cannot reliably distinguish them.
    """
    table = context.own
    excess = table.excess.copy()
    excess[:, :, Own.DEVICE] = table.own[:, :, Own.DEVICE] - context.expected_device
    excess[:, :, (Own.HOST, Own.OTHER)] = excess[:, :, (Own.HOST, Own.OTHER)].sum(axis=2)[:, :, None]
    limit = least * _usual_total(context)
    return np.stack([in_most_steps(excess[:, :, kind] > limit, table.total) for kind in Own], axis=1)


def fixed_kinds(context: JobContext) -> Bools:
    """Returns a mask of shape (ranks, kinds): True if the simulated fix of a slow rank replaces its time of this kind
    by that of its peers. The replaced kinds are those that are longer than usual in most steps (MIN_PART) or, if there
    are none, all kinds."""
    slow, longer = persistent_ranks(context), _longer_kinds(context, MIN_PART)
    fixed = np.zeros_like(longer)
    fixed[slow] = np.where(longer[slow].any(axis=1, keepdims=True), longer[slow], True)
    return fixed


def slow_devices(context: JobContext) -> Ints:
    """Returns the positions of the ranks whose device time is longer than that of their peers in most steps, whether or
    not more work explains it."""
    excess = context.own.excess[:, :, Own.DEVICE]
    longer = in_most_steps(excess > EXCESS_IN_MOST_STEPS * _usual_total(context), context.own.total)
    return np.flatnonzero(longer | _longer_kinds(context, EXCESS_IN_MOST_STEPS)[:, Own.DEVICE])


def _usual_total(context: JobContext) -> Floats:
    """Returns the usual own time (time without waiting) of all kinds together in ns, of shape (ranks, steps): the lower
    median over the ranks of the same stage. For the only rank of a stage, it is the sum of OwnTable.usual over the
    kinds."""
    usual = np.empty_like(context.own.total)
    for stage in range(context.grid.stages):
        peers = np.flatnonzero(context.grid.stage == stage)
        usual[peers] = lower_median(context.own.total[peers])
        if len(peers) == 1:
            usual[peers] = context.own.usual[peers].sum(axis=2)
    return usual


def _cause(context: JobContext, rank: int, longer: Bools) -> str:
    """Returns the id of the cause for a slow rank (see the module docstring). `rank` is a position among the recorded
    ranks, `longer` a mask of the kinds of own time (time without waiting) of which each alone is longer than usual in
    most steps (see _longer_kinds)."""
    excess = np.nanmedian(context.own.excess[rank], axis=0)
    kind = Own(int(np.argmax(np.where(longer, excess, -np.inf) if longer.any() else excess)))
    if kind is Own.INPUT:
        return "rank_input"
    if kind is Own.INTERRUPTION:
        return "rank_interruption"
    if kind is Own.DEVICE:
        uneven = "expert_imbalance" if expert_skew(context) >= MIN_EXPERT_SKEW else "data_imbalance"
        slower = kernel_ratio(context.job, context.grid, rank) >= 1 + MIN_SLOWER_KERNELS
        if work_ratio(context, rank) >= 1 + MIN_MORE_WORK and not (slower and longer[Own.DEVICE]):
            return uneven
        if slower and all_slower(kernel_ratios(context.job, context.grid, rank)):
            return "throttled_rank"
        if uneven == "expert_imbalance":
            return uneven
    return "slow_rank"


def _whole_hosts(context: JobContext, ranks: list[int]) -> dict[int, list[int]]:
    """Returns a dict from the number of each slow host to the positions of its ranks; empty if all hosts are slow.

    A host is slow if it has at least two recorded ranks, and all of them are in `ranks`, the slow ranks.
    """
    slow = {}
    for host in sorted(set(context.hosts[ranks].tolist()) - {-1}):
        members = np.flatnonzero(context.hosts == host).tolist()
        if len(members) > 1 and set(members) <= set(ranks):
            slow[host] = members
    return slow if len(slow) < len(set(context.hosts.tolist())) else {}


def _candidate(context: JobContext, cause: str, ranks: list[int], host: int = -1) -> Candidate:
    """Returns the candidate for the slow `ranks` (positions). `host` is the number of the host for the cause
    `slow_host`, otherwise -1. The fix of the candidate spreads the work evenly, or gives the ranks the own times (time
    without waiting) of their peers."""
    members = np.array(ranks, np.int64)
    excess = np.nanmean(context.own.excess[members], axis=(0, 1))
    facts: dict[str, Fact] = {"excess_ns": float(np.nanmean((context.own.total - _usual_total(context))[members]))}
    facts |= {f"excess_{kind.name.lower()}_ns": float(excess[kind]) for kind in Own if excess[kind] > 0}
    facts["origin_share"] = origin_share(context, members)
    if cause in ("data_imbalance", "expert_imbalance"):
        facts["work_ratio"] = max(work_ratio(context, rank) for rank in ranks)
        facts["skew"] = expert_skew(context)
        return Candidate(cause, members, even_ranks, facts)
    ratio = max(kernel_ratio(context.job, context.grid, rank) for rank in ranks)
    if ratio >= 1 + MIN_SLOWER_KERNELS:
        facts["kernel_ratio"] = ratio
    kinds = fixed_kinds(context)[members]
    usual = context.own.usual.copy()
    usual[:, :, Own.DEVICE] = context.expected_device
    slowest, fastest = _bounds(context, members)

    def fix(changed: Changed, of: JobContext) -> Changed:
        return like_peers(changed, of, members, kinds, usual)

    return Candidate(
        cause,
        members,
        fix,
        facts,
        low=lambda changed, of: like_peers(changed, of, members, kinds, slowest),
        high=lambda changed, of: like_peers(changed, of, members, kinds, fastest),
        host=host,
    )


def _bounds(context: JobContext, members: Ints) -> tuple[Floats, Floats]:
    """Returns the own times (time without waiting) of the slowest and of the fastest peer that is not in `members`
    (positions). Both arrays are in ns and have the shape (ranks, steps, kinds). They are the targets of the low and the
    high estimate of the fix."""
    table, slowest, fastest = context.own, context.own.usual.copy(), context.own.usual.copy()
    for stage in np.unique(context.grid.stage[members]).tolist():
        peers = np.flatnonzero(context.grid.stage == stage)
        others = np.setdiff1d(peers, members)
        if len(others):
            totals = np.nanmean(table.total[others], axis=1)
            slowest[peers], fastest[peers] = table.own[others[totals.argmax()]], table.own[others[totals.argmin()]]
    return slowest, fastest


def origin_share(context: JobContext, ranks: Ints) -> float:
    """Returns the share (0 to 1) of the waiting time in all pairs that one of `ranks` (positions) caused."""
    wires, pairs = context.wires, context.pairs
    paired = pairs.pair >= 0
    waits = np.bincount(pairs.pair[paired], weights=wires.wait[paired], minlength=pairs.count)
    return float(waits[np.isin(origins(context), ranks)].sum() / waits.sum()) if waits.sum() > 0 else 0.0
