"""Judges the ranks of one job together.

In a synchronous job all ranks take the same time per step: a rank that is slow does not wait in the collectives, and
the others wait there for it. So the rank with the least exposed communication sets the pace, and if it has clearly less
than the median rank, its own verdict is the job's.

A step takes what the slowest rank works, and what the exchange itself takes: at most what that rank waits. Were no rank
a straggler, the next slowest would set the pace, and a step would be shorter by what that one waits longer.
"""

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean, median

from tb_bottleneck.regime import Regime
from tb_bottleneck.replay.scenario_texts import RUN_TO_RUN_NOISE, word
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.units import share_text

# A rank that waits this much less of the step than the median rank is a straggler: traceml's warning level for its
# straggler score is 0.10 of the step (diagnostics/step_time/policy.py).
BEHIND = 0.10


def jobs_of(reports: Iterable[pb.Report]) -> list[pb.Job]:
    """One job for each run of which at least two ranks were judged, in order of run."""
    by_run: defaultdict[str, dict[int, pb.Report]] = defaultdict(dict)
    for report in reports:
        if (
            report.evidence_source != "telemetry"
            and report.world_size > 1
            and report.HasField("rank")
            and report.HasField("verdict")
        ):
            by_run[report.run].setdefault(report.rank, report)
    return [_job(run, ranks) for run, ranks in sorted(by_run.items()) if len(ranks) > 1]


def _job(run: str, ranks: dict[int, pb.Report]) -> pb.Job:
    waits = {rank: _share(report, Regime.COMMUNICATION) for rank, report in ranks.items()}
    usual = median(waits.values())
    stragglers = sorted((wait - usual, rank) for rank, wait in waits.items() if usual - wait >= BEHIND)
    pace = stragglers[0][1] if stragglers else min(ranks, key=lambda rank: (abs(waits[rank] - usual), rank))
    job = pb.Job(run=run, ranks=sorted(ranks), verdict=ranks[pace].verdict)
    if stragglers:
        share = f"{-stragglers[0][0] * 100:.0f} %"
        job.verdict.headline = (
            f"The other ranks wait for rank {pace}, which waits {share} less of each step than they do. "
            f"There: {ranks[pace].verdict.headline}"
        )
    elif job.verdict.regime == Regime.COMMUNICATION:
        least = min(waits.values())
        job.verdict.headline += (
            f" The rank that spends least in collectives spends {share_text(least)} there: no more than that is the "
            "exchange itself, the rest is waiting for one another."
        )
    if stragglers:
        every = all(report.world_size == len(ranks) for report in ranks.values())
        job.speedup.CopyFrom(_speedup(waits, {rank for _, rank in stragglers}, every))
    job.stragglers.extend(pb.Straggler(rank=rank, behind_share=-behind) for behind, rank in stragglers)
    job.account.extend(_mean_row(list(ranks.values()), position) for position in range(len(ranks[pace].account)))
    return job


def _speedup(waits: dict[int, float], stragglers: set[int], every: bool) -> pb.Speedup:
    """What the job gains if stragglers come to work like the median rank; only where no rank's recording is missing.

    The next slowest rank then sets the pace. At worst only the slowest one is cured, or its work moves to the others,
    so that all work like the mean; at best all work like the median. `waits` are shares of the step.
    """
    if not every:
        return pb.Speedup(expected=1, low=1, high=1, basis="none", because=word("ranks_missing").substitute())
    pace, usual, mean = min(waits.values()), median(waits.values()), fmean(waits.values())
    second = sorted(waits.values())[1]
    others = min(wait for rank, wait in waits.items() if rank not in stragglers)
    expected, least, most = (1 / (1 - (wait - pace)) for wait in (min(others, usual), min(second, mean), usual))
    return pb.Speedup(
        expected=expected,
        low=max(least / (1 + RUN_TO_RUN_NOISE), 1.0),
        high=most * (1 + RUN_TO_RUN_NOISE),
        basis="ranks",
        assumes=word("ranks_assumed").substitute(),
    )


def _mean_row(reports: list[pb.Report], position: int) -> pb.AccountRow:
    rows = [report.account[position] for report in reports]
    return pb.AccountRow(
        regime=rows[0].regime,
        share=fmean(row.share for row in rows),
        ns_per_step=fmean(row.ns_per_step for row in rows),
        title=rows[0].title,
        meaning=rows[0].meaning,
    )


def _share(report: pb.Report, regime: str) -> float:
    return next(row.share for row in report.account if row.regime == regime)
