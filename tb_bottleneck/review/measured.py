"""Puts the gains that trials measured in place of the predicted gains of a report."""

from tb_bottleneck.report.builders.action import led_by_action
from tb_bottleneck.report.builders.gains import lowered_severity
from tb_bottleneck.report.digest import WORTH_LEADING
from tb_bottleneck.review.trial_notes import TRIAL, measured_gains, measured_speedup
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.schema.review_pb2 import Review


def with_measured_gains(report: pb.Report, review: Review | None) -> pb.Report:
    """Returns a copy of `report` with the gains that trials measured in place of the predicted ones; `report` itself if
    nothing was measured.

    A finding whose fix gained nothing comes last, and the next change leads. The plan ends before the first fix that
    was measured, because its fixes were simulated together. The severity is lowered to the remaining gains.
    """
    gains = measured_gains(review)
    if not any(finding.cause in gains for finding in report.findings):
        return report
    result = pb.Report()
    result.CopyFrom(report)
    for finding in result.findings:
        if finding.cause in gains:
            finding.speedup.CopyFrom(measured_speedup(finding.speedup, gains[finding.cause]))
    ordered = sorted(result.findings, key=lambda finding: _gained_nothing(finding.speedup))
    del result.findings[:]
    result.findings.extend(ordered)
    kept = next((at for at, step in enumerate(result.plan) if step.cause in gains), len(result.plan))
    del result.plan[kept:]
    result.verdict.severity = lowered_severity(result)
    return led_by_action(result)


def _gained_nothing(speedup: pb.Speedup) -> bool:
    return speedup.basis == TRIAL and speedup.expected < WORTH_LEADING
