"""The table of a job's ranks, and the rank whose verdict explains the verdict of the job."""

from collections.abc import Mapping, Sequence

from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.schema.job_pb2 import JobAnswer, RankTable, RegimeShares

DIGITS = 4  # decimal places of shares; more would only make answers larger

OF_RANKS = frozenset(("slow_rank", "slow_host", "rank_input", "throttled_rank", "rank_interruption"))
"""Causes in single ranks. The verdict of such a rank explains the cause further."""


def rank_rows(reports: Mapping[int, pb.Report]) -> RankTable:
    """Returns the table columns that reports provide, sorted by rank. `reports` has the reports by rank."""
    ranks = sorted(reports)
    verdicts = [reports[rank].verdict for rank in ranks]
    return RankTable(
        rank=ranks,
        source=[reports[rank].source for rank in ranks],
        step_ns=[reports[rank].window.step_ns.mean for rank in ranks],
        regime=[verdict.regime for verdict in verdicts],
        severity=[verdict.severity for verdict in verdicts],
        account=shares_by_regime([[_share(reports[rank], regime) for rank in ranks] for regime in REGIMES]),
    )


def shares_by_regime(columns: Sequence[Sequence[float]]) -> list[RegimeShares]:
    """Returns one column per regime, without columns that are zero for all ranks. `columns` has the fractions (0 to 1)
    of all regimes, in the order of REGIMES, with one value per rank."""
    rounded = [[round(share, DIGITS) for share in column] for column in columns]
    return [
        RegimeShares(regime=regime, share=column)
        for regime, column in zip(REGIMES, rounded, strict=True)
        if any(column)
    ]


def named_rank(job: pb.Job) -> int | None:
    """Returns the rank that the verdict of a job is about: the first rank of the first culprit (a cause in single
    ranks), or the first straggler.

    Returns None if the verdict is not about a single rank."""
    if job.culprits:
        return job.culprits[0].ranks[0] if job.culprits[0].cause in OF_RANKS and job.culprits[0].ranks else None
    return job.stragglers[0].rank if job.stragglers else None


def speaker_of(job: pb.Job, ranks: RankTable) -> int | None:
    """Returns the rank whose own verdict explains the verdict of the job; None if there is no such rank.

    The result is that of `named_rank` or, for a job without culprits and stragglers, the rank with the median share of
    exposed communication."""
    if job.culprits or job.stragglers:
        return named_rank(job)
    waits = next((column.share for column in ranks.account if column.regime == Regime.COMMUNICATION), None)
    if not waits:
        return None
    ordered = sorted(zip(waits, ranks.rank, strict=True))
    return ordered[len(ordered) // 2][1]


def gain_of(job: pb.Job) -> pb.Speedup | None:
    """Returns the predicted gain of the job if all culprits were fixed, otherwise if all stragglers were; None if
    neither is known."""
    return next((gain for gain in (job.speedup_all, job.speedup) if gain.expected > 1), None)


def first_action(job: pb.Job) -> str:
    """Returns what to change first in the job, without its gain; empty if no cause was found in its ranks."""
    return next((culprit.fix.action or culprit.title for culprit in job.culprits), "")


def make_brief(answer: JobAnswer) -> None:
    """Removes the tables of ranks and steps from `answer`, and everything from its job except run, world size, verdict
    and stragglers."""
    answer.ClearField("ranks")
    answer.ClearField("steps")
    if answer.HasField("job"):
        job = answer.job
        answer.job.CopyFrom(
            pb.Job(run=job.run, world_size=job.world_size, verdict=job.verdict, stragglers=job.stragglers)
        )


def _share(report: pb.Report, regime: str) -> float:
    return next((row.share for row in report.account if row.regime == regime), 0.0)
