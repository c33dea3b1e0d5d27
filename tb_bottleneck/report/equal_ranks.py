"""Gives equal predictions to ranks of one job that have equal accounts (time per regime)."""

from collections.abc import Iterable, Sequence
from statistics import median, median_low

from tb_bottleneck.bottlenecks.texts import word
from tb_bottleneck.report.builders.action import led_by_action
from tb_bottleneck.report.cross_check import MIN_DIFFERENCE
from tb_bottleneck.report.jobs import jobs_in
from tb_bottleneck.schema import bottleneck_pb2 as pb

# Largest number of ranks with equal accounts that are compared, the lowest ranks first. More ranks would hardly change
# the median.
MAX_COMPARED = 8


def with_equal_predictions(reports: Sequence[pb.Report]) -> list[pb.Report]:
    """Returns the reports in the same order; each simulated gain is the median over the ranks with an equal account
    (time per regime).

    Ranks with an equal account do the same work at the same time, so a fix has the same gain on all of them. The
    replays of their recordings may still differ, because a recording may show the wrong operation as the one that ends
    last before a wait. The median is robust against a single wrong replay.

    The plan is the plan of the rank with the median total gain, among ranks whose plan has only causes that are
    findings of the report.
    """
    results = list(reports)
    for group in _groups(reports):
        members = [reports[position] for position in group[:MAX_COMPARED]]
        for position in group:
            results[position] = _with_medians(reports[position], members)
    return results


def have_equal_accounts(a: Iterable[pb.AccountRow], b: Iterable[pb.AccountRow]) -> bool:
    """Returns True if the fractions of each regime in the accounts `a` and `b` differ by less than MIN_DIFFERENCE."""
    shares_a, shares_b = ({row.regime: row.share for row in rows} for rows in (a, b))
    return all(
        abs(shares_a.get(regime, 0.0) - shares_b.get(regime, 0.0)) < MIN_DIFFERENCE
        for regime in shares_a.keys() | shares_b.keys()
    )


def _groups(reports: Sequence[pb.Report]) -> list[list[int]]:
    """Returns groups of positions in `reports`: in each group, at least two ranks of one job with equal accounts, in
    order of rank. Ranks whose replay is not trusted are left out."""
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
    return led_by_action(result)


def _total(report: pb.Report) -> float:
    """Returns the gain of the whole plan, as a factor; 1 without a plan."""
    return report.plan[-1].speedup_total if report.plan else 1.0
