"""The table of a job's ranks, as far as their reports fill it, and the rank whose verdict explains that of the job.

Ranks with equal accounts get equal predictions.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median, median_low

from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.replay.scenario_texts import word
from tb_bottleneck.report.builders.action import lead_with_action
from tb_bottleneck.report.cross_check import MIN_DIFFERENCE
from tb_bottleneck.report.jobs import jobs_in
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.schema.job_pb2 import JobAnswer, RankTable, RegimeShares

# The number of ranks with equal accounts that are compared, the lowest first: more would not change the median much.
MAX_COMPARED = 8


def with_equal_predictions(reports: Sequence[pb.Report]) -> list[pb.Report]:
    """Returns the reports in the same order; each simulated gain is the median over the ranks with an equal account.

    Such ranks do the same work at the same time, so a fix gains the same on all of them. Replays of their recordings
    may still differ, where a recording shows another operation than the real one as the last to end before a wait. The
    median over the ranks does not follow a single such replay.

    The plan is that of the rank with the median total gain, among those with fixes for causes that the report names.
    """
    results = list(reports)
    for group in _groups(reports):
        members = [reports[position] for position in group[:MAX_COMPARED]]
        for position in group:
            results[position] = _with_medians(reports[position], members)
    return results


def have_equal_accounts(a: Iterable[pb.AccountRow], b: Iterable[pb.AccountRow]) -> bool:
    """Returns True if no regime's share differs by MIN_DIFFERENCE or more."""
    shares_a, shares_b = ({row.regime: row.share for row in rows} for rows in (a, b))
    return all(
        abs(shares_a.get(regime, 0.0) - shares_b.get(regime, 0.0)) < MIN_DIFFERENCE
        for regime in shares_a.keys() | shares_b.keys()
    )


def _groups(reports: Sequence[pb.Report]) -> list[list[int]]:
    """Returns the positions of the ranks of one job with equal accounts, in order of rank; at least two per group."""
    groups: list[list[int]] = []
    for positions in jobs_in(reports):
        of_job: list[list[int]] = []
        for position in (position for position in positions if not reports[position].replay.because):
            account = reports[position].account
            same = (group for group in of_job if have_equal_accounts(reports[group[0]].account, account))
            group = next(same, None)
            if group is None:
                of_job.append([position])
            else:
                group.append(position)
        groups += of_job
    return [group for group in groups if len(group) > 1]


def _with_medians(report: pb.Report, members: Sequence[pb.Report]) -> pb.Report:
    result = pb.Report()
    result.CopyFrom(report)
    for finding in result.findings:
        gains = [
            other.speedup
            for member in members
            for other in member.findings
            if other.cause == finding.cause and other.speedup.basis == "replay"
        ]
        if finding.speedup.basis != "replay" or len(gains) < 2:
            continue
        finding.speedup.expected = median(gain.expected for gain in gains)
        finding.speedup.low = median(gain.low for gain in gains)
        finding.speedup.high = median(gain.high for gain in gains)
        finding.speedup.assumes += f"; {word('ranks_equal').substitute()}"
    causes = {finding.cause for finding in report.findings}
    plans = {
        (_total(member), member.rank): member for member in members if {step.cause for step in member.plan} <= causes
    }
    if len(plans) > 1:
        del result.plan[:]
        result.plan.extend(plans[median_low(plans)].plan)
    lead_with_action(result)
    return result


def _total(report: pb.Report) -> float:
    """Returns the gain of the whole plan."""
    return report.plan[-1].speedup_total if report.plan else 1.0


DIGITS = 4  # of shares: more only makes answers larger

OF_RANKS = frozenset(("slow_rank", "slow_host", "rank_input", "throttled_rank", "rank_interruption"))
"""Causes that lie in single ranks, which the verdict of such a rank explains further."""


def rank_rows(reports: Mapping[int, pb.Report]) -> RankTable:
    """Returns the columns that come from reports, in order of rank."""
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
    """Returns the shares of all regimes, given in the order of REGIMES, without those that are zero everywhere."""
    rounded = [[round(share, DIGITS) for share in column] for column in columns]
    return [
        RegimeShares(regime=regime, share=column)
        for regime, column in zip(REGIMES, rounded, strict=True)
        if any(column)
    ]


def named_rank(job: pb.Job) -> int | None:
    """Returns the rank that the verdict of a job is about: the first of a culprit or straggler, or None."""
    if job.culprits:
        return job.culprits[0].ranks[0] if job.culprits[0].cause in OF_RANKS and job.culprits[0].ranks else None
    return job.stragglers[0].rank if job.stragglers else None


def speaker_of(job: pb.Job, ranks: RankTable) -> int | None:
    """Returns the rank whose own verdict explains that of the job, or None: the first of a culprit or straggler; of a
    job without either, the one with the median share of collectives."""
    if job.culprits or job.stragglers:
        return named_rank(job)
    waits = next((column.share for column in ranks.account if column.regime == Regime.COMMUNICATION), None)
    if not waits:
        return None
    ordered = sorted(zip(waits, ranks.rank, strict=True))
    return ordered[len(ordered) // 2][1]


def gain_of(job: pb.Job) -> pb.Speedup | None:
    """Returns the gain of the job without all that holds it up; None if none is predicted."""
    return next((gain for gain in (job.speedup_all, job.speedup) if gain.expected > 1), None)


def first_action(job: pb.Job) -> str:
    """Returns what to change first, without its gain; empty if there is no culprit."""
    return next((culprit.fix.action or culprit.title for culprit in job.culprits), "")


def make_brief(answer: JobAnswer) -> None:
    """Leaves only the verdict of the job in an answer."""
    answer.ClearField("ranks")
    answer.ClearField("steps")
    if answer.HasField("job"):
        job = answer.job
        answer.job.CopyFrom(
            pb.Job(run=job.run, world_size=job.world_size, verdict=job.verdict, stragglers=job.stragglers)
        )


def _share(report: pb.Report, regime: str) -> float:
    return next((row.share for row in report.account if row.regime == regime), 0.0)
