"""Every recorded training is judged from its trace and from its telemetry, and both reports give one verdict."""

from pathlib import Path

import pytest
from helpers.reports import report_of

from demo.pairs import RECORDED
from tb_bottleneck.report.cross_check import join
from tb_bottleneck.schema import bottleneck_pb2 as pb

TRAININGS = sorted(folder.parent for folder in RECORDED.glob("*/*/tb_bottleneck"))


def joined(folder: Path) -> tuple[pb.Report, pb.Report]:
    """Returns the reports of the trace and of the telemetry."""
    (trace,), (series,) = folder.glob("*.pt.trace.json.gz"), folder.glob("tb_bottleneck/*/events.out.tfevents.*")
    reports = [(str(path.parent), report_of(path)) for path in (trace, series)]
    by_trace, by_telemetry = join(reports)
    return by_trace, by_telemetry


def test_every_recording_of_the_demo_has_both_sources() -> None:
    assert len(TRAININGS) == len(list(RECORDED.glob("*/*/*.pt.trace.json.gz"))) >= 32


@pytest.mark.parametrize("folder", TRAININGS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_both_sources_agree_or_the_report_says_which_one_it_trusts(folder: Path) -> None:
    trace, telemetry = joined(folder)
    assert trace.evidence_source == "both"
    assert trace.verdict == telemetry.verdict
    alone = {other.witness: other for other in trace.others}
    assert alone.keys() == {"trace", "telemetry"}
    (trusted,) = [other for other in alone.values() if other.trusted]
    about_time = [type(verdict).FromString(verdict.SerializeToString()) for verdict in (trace.verdict, trusted.verdict)]
    for verdict in about_time:
        verdict.ClearField("memory_alert")  # of both sources together
    assert about_time[0] == about_time[1]
    if alone["trace"].verdict.regime != alone["telemetry"].verdict.regime:
        assert trusted.because.endswith(f"The verdict of the {trusted.witness} counts.")
        assert "$" not in trusted.because


def test_slow_storage_is_named_although_the_trace_sees_only_late_workers() -> None:
    for report in joined(RECORDED / "slow_storage" / "slow"):
        assert report.findings[0].cause == "slow_storage"
        assert "too_few_workers" not in [finding.cause for finding in report.findings]
        assert [other.witness for other in report.others if other.trusted] == ["telemetry"]
        assert "waits for storage, the network or a lock" in report.verdict.headline


@pytest.mark.parametrize("folder", TRAININGS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_telemetry_gives_no_all_clear_where_the_trace_finds_a_loss(folder: Path) -> None:
    """A checkpoint every second step took 47 %, and the telemetry said that the CPU is at work."""
    trace, _ = joined(folder)
    alone = {other.witness: other.verdict for other in trace.others}
    if alone["trace"].severity in ("critical", "warning") and alone["telemetry"].severity == "none":
        headline = alone["telemetry"].headline
        assert alone["telemetry"].regime == "unexplained" or "Only a trace shows" in headline
    assert not (alone["telemetry"].confidence == "low" and alone["telemetry"].severity == "critical")
