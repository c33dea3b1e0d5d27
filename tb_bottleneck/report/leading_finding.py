"""The finding that the headline of a report names. Lists name it, too; they must not import the replay."""

from tb_bottleneck.schema import bottleneck_pb2 as pb

WORTH_STATING = 0.02
"""A smaller gain is not stated: WORTH_DOING of replay/plan.py."""


def leading_finding(report: pb.Report) -> pb.Finding | None:
    """Returns the first finding of the verdict's regime with an action and a gain; None without one."""
    for finding in report.findings:
        of_verdict = finding.regime == report.verdict.regime
        if finding.fix.action and of_verdict and finding.speedup.expected >= 1 + WORTH_STATING:
            return finding
    return None
