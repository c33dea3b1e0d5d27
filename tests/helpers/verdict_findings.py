"""The first finding of the verdict's regime. Findings of other regimes come before it if the plan begins with them."""

from tb_bottleneck.schema import bottleneck_pb2 as pb


def first_of_verdict(report: pb.Report) -> pb.Finding:
    """Returns the costliest finding of the verdict's regime."""
    return next(finding for finding in report.findings if finding.regime == report.verdict.regime)
