"""Says what a report means for a run on the CPU, whose texts are written for devices."""

from tb_bottleneck.knowledge.cpu_words import on_cpu
from tb_bottleneck.schema import bottleneck_pb2 as pb


def say_on_cpu(report: pb.Report) -> None:
    """Replaces words about devices if the report is about a run on the CPU."""
    if report.device.kind != "cpu":
        return
    for row in report.account:
        row.meaning = on_cpu(row.meaning)
    for finding in report.findings:
        finding.title, fix = on_cpu(finding.title), finding.fix
        fix.summary, fix.confirm = on_cpu(fix.summary), on_cpu(fix.confirm)
    for evidence in (row for part in (report.findings, report.headroom) for each in part for row in each.evidence):
        evidence.label, evidence.compared_with = on_cpu(evidence.label), on_cpu(evidence.compared_with)
