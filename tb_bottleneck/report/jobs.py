"""Judges the ranks of one job together.

In a synchronous job all ranks take the same time per step: a rank that is slow does not wait in the collectives, and
the others wait there for it. So the rank with the least exposed communication sets the pace, and if it has clearly less
than the median rank, its own verdict is the job's.
"""

from collections import defaultdict
from collections.abc import Iterable
from statistics import fmean, median

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
            report.witness != "telemetry"
            and report.world_size > 1
            and report.HasField("rank")
            and report.HasField("verdict")
        ):
            by_run[report.run].setdefault(report.rank, report)
    return [_job(run, ranks) for run, ranks in sorted(by_run.items()) if len(ranks) > 1]


def _job(run: str, ranks: dict[int, pb.Report]) -> pb.Job:
    waits = {rank: _share(report, "communication") for rank, report in ranks.items()}
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
    elif job.verdict.regime == "communication":
        least = min(waits.values())
        job.verdict.headline += (
            f" The rank that spends least in collectives spends {share_text(least)} there: no more than that is the "
            "exchange itself, the rest is waiting for one another."
        )
    job.stragglers.extend(pb.Straggler(rank=rank, behind_share=-behind) for behind, rank in stragglers)
    job.account.extend(_mean_row(list(ranks.values()), position) for position in range(len(ranks[pace].account)))
    return job


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
