"""A memory problem stands among the findings about time, and before them if it is more urgent."""

import pytest

from tb_bottleneck.report.cross_check import join
from tb_bottleneck.report.jobs import jobs_of
from tb_bottleneck.report.memory_alert import alert_of, leading_alert, worth_fixing
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.report import render
from tb_bottleneck.text.table_rows import rows_of


def memory(*severities: str) -> pb.Memory:
    found = pb.Memory(peak_bytes=1e9)
    for severity in severities:
        found.findings.add(
            cause=f"cause_{severity}",
            title=f"Title {severity}",
            severity=severity,
            headline="" if severity == "info" else f"Headline {severity}.",
            fix=pb.Fix(summary="Summary.", code="code()", action="Act"),
        )
    return found


def judged(severity: str, *of_memory: str, source: str = "trace") -> pb.Report:
    report = pb.Report(evidence_source=source, source=source, health=pb.Health(status="ok"), rank=0)
    report.verdict.regime, report.verdict.severity, report.verdict.headline = "input", severity, "Waits for data."
    finding = report.findings.add(cause="loader_in_main_process", title="Batches", regime="input", cost_share=0.3)
    finding.speedup.high = 1.5
    if of_memory:
        report.memory.CopyFrom(memory(*of_memory))
    report.verdict.MergeFrom(pb.Verdict(memory_alert=alert_of(report.verdict.severity, report.memory)))
    return report


@pytest.mark.parametrize(
    ("time", "of_memory", "leads"),
    [
        ("critical", "critical", True),
        ("critical", "warning", False),
        ("warning", "warning", False),
        ("info", "warning", True),
        ("none", "warning", True),
    ],
)
def test_what_ends_the_training_or_is_more_severe_leads(time, of_memory, leads):
    report = judged(time, of_memory)
    assert (leading_alert(report.verdict) is not None) == leads
    lines = render(report).splitlines()
    first = [f"Headline {of_memory}.", "Waits for data."][not leads]
    assert lines[2] == first
    titles = ["1. Batches  [loader_in_main_process]", f"2. Title {of_memory}  [cause_{of_memory}]"]
    if leads:
        titles = [f"1. Title {of_memory}  [cause_{of_memory}]", "2. Batches  [loader_in_main_process]"]
    assert [line for line in lines if line in titles] == titles
    (row,) = rows_of([report])
    assert row.severity == (of_memory if leads else time)
    assert (row.action == "Act") == leads


def test_remarks_about_the_memory_are_no_findings_of_the_report():
    report = judged("none", "info")
    assert not worth_fixing(report.memory)
    assert not report.verdict.HasField("memory_alert")
    assert "Title info" in render(report)
    assert "1. Title info" not in render(report)


def test_the_most_severe_problem_is_named():
    assert judged("none", "info", "warning", "critical").verdict.memory_alert.cause == "cause_critical"


def test_a_trace_and_telemetry_of_one_process_name_the_same_problem():
    trace, telemetry = join([("a", judged("none", "warning")), ("a", judged("info", source="telemetry"))])
    for report in (trace, telemetry):
        assert report.verdict.memory_alert.cause == "cause_warning"
        assert report.verdict.memory_alert.leads
        assert [finding.cause for finding in worth_fixing(report.memory)] == ["cause_warning"]


def test_findings_that_only_the_other_recording_has_are_added():
    trace, telemetry = join([("a", judged("none", "warning")), ("a", judged("none", "critical", source="telemetry"))])
    for report in (trace, telemetry):
        assert {finding.cause for finding in report.memory.findings} == {"cause_warning", "cause_critical"}
        assert report.verdict.memory_alert.cause == "cause_critical"


def test_the_verdict_of_a_job_names_the_problem_of_one_rank():
    reports = [judged("none"), judged("none", "critical")]
    for rank, report in enumerate(reports):
        report.rank, report.world_size = rank, 2
        report.account.add(regime="communication", share=0.1)
        report.window.steps = 3
    (job,) = jobs_of(reports)
    assert job.verdict.memory_alert.cause == "cause_critical"
    assert job.verdict.memory_alert.leads
