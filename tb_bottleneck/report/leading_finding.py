"""What the headline of a report names. Lists name it, too; they must not import the replay."""

from tb_bottleneck.schema import bottleneck_pb2 as pb

WORTH_LEADING = 1.05
"""A fix with a smaller gain never leads: two runs of one training differ by a few percent."""


def leading_finding(report: pb.Report) -> pb.Finding | None:
    """Returns the first finding of the verdict's regime with an action and a gain; None without one."""
    for finding in report.findings:
        of_verdict = finding.regime == report.verdict.regime
        if finding.fix.action and of_verdict and finding.speedup.expected >= WORTH_LEADING:
            return finding
    return None


def plan_leads(report: pb.Report) -> bool:
    """Returns True if the first fix of the plan is what to do first.

    The leading finding is instead if its gain could not be simulated, so that it is not in the plan, but is as large:
    the cause of most of the lost time should not come after a small fix that happens to be simulated. An estimate from
    other trainings counts with its lower bound: these differ widely.
    """
    if not report.plan or report.plan[0].speedup_total < WORTH_LEADING:
        return False
    finding = leading_finding(report)
    if finding is None or finding.speedup.basis == "replay":
        return True
    gain = finding.speedup.low if finding.speedup.basis == "estimate" else finding.speedup.expected
    return gain < report.plan[0].speedup_total
