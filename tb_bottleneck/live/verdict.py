"""Finds what delays a job while it trains: a rank that hangs or whose process is gone, or a rank that is slower than
the others.

The own time of a rank (base/own_time.py) is here its step time without the backward pass, in which the gradients are
exchanged.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tb_bottleneck.base.stragglers import EXCESS, slow_ranks
from tb_bottleneck.live.rank_states import LiveJob, Rank, RankState, typical
from tb_bottleneck.live.wording import LiveVerdict, live_verdict

# The limits from here on are chosen, not measured.
CERTAIN_STEPS = 20
"""Smallest number of steps in the last minute for which a rank is compared. If its steps take more than 10 s in total,
FEW_STEPS steps suffice."""
FEW_STEPS = 3
OF_WAITS = 0.5
"""The other ranks must wait for at least this share of the excess (by which the own time of the slow rank is longer).
Otherwise, the ranks do not depend on each other."""
SLOWER_CLOCK = 0.93
"""A GPU is slow if its clock is less than this share of the clock of the other GPUs."""
BUSIER = 1.25
"""Without a GPU, a rank computes longer if it keeps at least this factor times as many cores busy as the others."""
CRITICAL = 0.20
"""Smallest excess (difference of own times), as a share of the step, for which a slow rank is critical (traceml:
0.20)."""

STAGES = {"rank_input": ("loader_wait",), "rank_forward": ("forward",), "rank_optimizer": ("optimizer",)}
INTERRUPTIONS = ("checkpoint", "logging", "garbage_collection", "evaluation")


def verdict_of(job: LiveJob) -> LiveVerdict:
    """Returns the verdict about what delays the job. A stall comes before a slow rank."""
    return _stall(job) or _slow_rank(job) or _healthy(job)


def training_ranks(job: LiveJob) -> list[Rank]:
    """Returns the ranks of `job` that make steps, or have made one lately."""
    return [rank for rank in job.ranks if rank.state in (RankState.RUNNING, RankState.BUSY)]


def ranks_to_record(job: LiveJob, verdict: LiveVerdict) -> list[Rank]:
    """Returns the ranks whose traces show why a rank is slow, at most three: the slow rank, the rank with the longest
    backward pass (the time in which it waits), and a typical rank. If `verdict` names no rank, the rank with the
    longest own time is used as the slow rank."""
    ranks = training_ranks(job)
    ordered = sorted(ranks, key=_own)
    if not ordered:
        return []
    slow = next((rank for rank in ranks if rank.number in verdict.ranks), ordered[-1])
    others = [rank for rank in ordered if rank is not slow]
    victim = max(others, key=lambda rank: _figure(rank, "backward"), default=None)
    rest = [rank for rank in others if rank is not victim]
    usual = rest[len(rest) // 2] if rest else None
    return sorted((rank for rank in (slow, victim, usual) if rank is not None), key=lambda rank: rank.number)


# --- ranks without a step ---

_GONE = (
    (RankState.KILLED, "killed"),
    (RankState.FAILED, "failed"),
    (RankState.STOPPED, "stopped"),
    (RankState.SILENT, "silent"),
)


def _stall(job: LiveJob) -> LiveVerdict | None:
    if all(rank.state in (RankState.ENDED, RankState.FAILED, RankState.KILLED) for rank in job.ranks):
        failed = [rank for rank in job.ranks if rank.state is not RankState.ENDED]
        if not failed:
            return live_verdict("ended", "none", job, ())
        first = min(failed, key=lambda rank: (rank.beat.step, rank.beat.unix_ns))
        return live_verdict("killed" if first.state is RankState.KILLED else "failed", "critical", job, [first])
    for state, cause in _GONE:
        gone = [rank for rank in job.ranks if rank.state is state]
        if gone:
            return live_verdict(cause, "critical", job, gone, stalled=True)
    hanging = [rank for rank in job.ranks if rank.state is RankState.HANGS]
    if hanging:
        earliest = min(rank.beat.step for rank in hanging)
        culprits = [rank for rank in hanging if rank.beat.step == earliest]
        return live_verdict("hang" if culprits[0].place else "hang_unknown", "critical", job, culprits, stalled=True)
    waiting = [rank for rank in job.ranks if rank.state is RankState.WAITING]
    if waiting and len(waiting) == len(job.ranks) == job.world_size:
        return _deadlock(job, waiting)
    ended = [rank for rank in job.ranks if rank.state is RankState.ENDED]
    if ended and waiting:
        return live_verdict("ended_early", "critical", job, ended, stalled=True)
    busy = [rank for rank in job.ranks if rank.state is RankState.BUSY]
    if busy:
        return live_verdict("busy", "info", job, busy)
    return None


def _deadlock(job: LiveJob, waiting: Sequence[Rank]) -> LiveVerdict:
    """Returns the verdict if all ranks wait. The suspects are ranks at another step or in another call than most."""
    usual = Counter((rank.beat.step, rank.place) for rank in waiting).most_common(1)[0][0]
    others = [rank for rank in waiting if (rank.beat.step, rank.place) != usual]
    cause = "collective_mismatch" if others else "collective_stuck"
    return live_verdict(cause, "critical", job, others or waiting, stalled=True)


# --- ranks that are slower ---


def _slow_rank(job: LiveJob) -> LiveVerdict | None:
    ranks = [rank for rank in job.ranks if rank.state is RankState.RUNNING and _is_comparable(rank)]
    if len(ranks) < 2:
        return None
    step = typical(rank.beat.recent["wall"] for rank in ranks)
    for at, excess in slow_ranks(np.array([*map(_own, ranks)]), step)[:1]:
        slowest, others = ranks[at], [*ranks[:at], *ranks[at + 1 :]]
        waits = typical(_figure(rank, "backward") for rank in others) - _figure(slowest, "backward")
        if waits >= OF_WAITS * excess:
            cause = _stage(slowest, others, excess)
            return live_verdict(cause, _severity(excess / step), job, [slowest], excess=excess)
    return _interrupted(job, ranks) or _slow_device(job, ranks) or _slow_compute(job, ranks)


def _stage(slowest: Rank, others: Sequence[Rank], excess: float) -> str:
    """Returns the cause for the part of the step in which `slowest` differs most from the `others`. `excess` is the
    difference of the own times (step without the backward pass) in ns."""

    def beyond(*columns: str) -> float:
        return sum(_figure(slowest, name) - typical(_figure(rank, name) for rank in others) for name in columns)

    if beyond(*INTERRUPTIONS) > excess / 2:  # in most steps
        return "rank_interruption"
    stages = {cause: beyond(*columns) for cause, columns in STAGES.items()}
    stages["rank_host"] = excess - sum(stages.values())
    return max(stages, key=stages.__getitem__)


def _interrupted(job: LiveJob, ranks: Sequence[Rank]) -> LiveVerdict | None:
    """Returns the verdict about a rank that sometimes has long steps, but is usually not slower; None if there is no
    such rank."""

    def rare(rank: Rank) -> float:
        return _figure(rank, "own_mean") - _figure(rank, "own")

    worst = max(ranks, key=rare)
    excess = rare(worst) - typical(rare(rank) for rank in ranks if rank is not worst)
    share = excess / (typical(rank.beat.recent["wall"] for rank in ranks) + excess)
    if share < EXCESS:
        return None
    # An evaluation or a checkpoint on one rank is usual; it is worth a warning only if it takes much of the time.
    return live_verdict("rank_interruption", "info" if share < CRITICAL else "warning", job, [worst], excess=excess)


def _severity(share: float) -> str:
    return "critical" if share >= CRITICAL else "warning"


def _slow_device(job: LiveJob, ranks: Sequence[Rank]) -> LiveVerdict | None:
    clocks = {rank.number: rank.beat.device["sm_clock"] for rank in ranks if rank.beat.device.get("sm_clock")}
    if len(clocks) < 2:
        return None
    slow = min(ranks, key=lambda rank: clocks.get(rank.number, float("inf")))
    usual = typical(clock for number, clock in clocks.items() if number != slow.number)
    if clocks[slow.number] >= SLOWER_CLOCK * usual:
        return None
    share = f"{100 * clocks[slow.number] / usual:.0f} %"
    return live_verdict("rank_device", "warning", job, [slow], values={"clock": share})


def _slow_compute(job: LiveJob, ranks: Sequence[Rank]) -> LiveVerdict | None:
    """Returns the verdict about a rank that computes longer without a GPU. Such a rank keeps its cores busy while the
    others wait in the exchange. Returns None if there is no such rank."""
    busy = {rank.number: rank.beat.device.get("process_cores", 0.0) for rank in ranks}
    if any(rank.beat.device.get("sm_clock") for rank in ranks) or not all(busy.values()):
        return None
    slow = max(ranks, key=lambda rank: busy[rank.number])
    usual = typical(cores for number, cores in busy.items() if number != slow.number)
    if busy[slow.number] < BUSIER * usual:
        return None
    return live_verdict(
        "rank_compute", "warning", job, [slow], values={"busy": f"{busy[slow.number]:.1f}", "others": f"{usual:.1f}"}
    )


def _healthy(job: LiveJob) -> LiveVerdict:
    if all(rank.beat.step < 0 for rank in job.ranks):
        return live_verdict("starting", "none", job, ())
    if job.world_size == 1:
        wall = job.ranks[0].beat.recent.get("wall", 0.0)
        return live_verdict("single", "none", job, (), values={"rate": f"{1e9 / wall:.1f}" if wall else "no"})
    ranks = [rank for rank in job.ranks if _is_comparable(rank)]
    if len(ranks) < 2:
        return live_verdict("too_few", "none", job, ())
    if not any("backward" in rank.beat.recent for rank in ranks):
        return live_verdict("exchange_unseen", "none", job, ())
    step = typical(rank.beat.recent["wall"] for rank in ranks)
    spread = (max(map(_own, ranks)) - min(map(_own, ranks))) / step
    return live_verdict("alike", "none", job, (), values={"spread": f"{100 * spread:.0f} %"})


def _is_comparable(rank: Rank) -> bool:
    steps, wall = rank.beat.recent.get("steps", 0), rank.beat.recent.get("wall", 0.0)
    return wall > 0 and (steps >= CERTAIN_STEPS or (steps >= FEW_STEPS and steps * wall > 1e10))


def _figure(rank: Rank, name: str) -> float:
    return rank.beat.recent.get(name, 0.0)


def _own(rank: Rank) -> float:
    """Returns the typical time in ns of a step of `rank` without the backward pass, in which gradients are
    exchanged."""
    return _figure(rank, "own")
