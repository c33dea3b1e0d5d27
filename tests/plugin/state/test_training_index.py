"""A training in the list has the most urgent problem with the memory of all its recordings."""

from tb_bottleneck.plugin.state.training_index import TrainingIndex
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.report.memory_alert import alert_of
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.sources.logdir import RecordingFile

TRACE = RecordingFile("/logs/a/t.pt.trace.json", "a", "t.pt.trace.json", 7, 1)
EVENTS = "events.out.tfevents.1795277016.882.0"
FOLDER = "tb_bottleneck/20261121-160233_rank0_877"
TELEMETRY = RecordingFile(f"/logs/a/{FOLDER}/{EVENTS}", f"a/{FOLDER}", EVENTS, 7, 1)


def digest(recording: RecordingFile, memory: pb.Memory | None = None) -> Digest:
    report = pb.Report(run=recording.run, source=recording.source, evidence_source=recording.kind, rank=0)
    report.health.status = "ok"
    report.verdict.regime, report.verdict.severity = "compute", "info"
    if memory is not None:
        report.verdict.MergeFrom(pb.Verdict(memory_alert=alert_of(report.verdict.severity, memory)))
    return Digest.of(report)


def test_the_alert_of_the_trace_is_that_of_the_training() -> None:
    finding = pb.MemoryFinding(cause="growing_memory", severity="warning", title="Memory grows", headline="It grows.")
    known = [(TRACE, digest(TRACE, pb.Memory(findings=[finding]))), (TELEMETRY, digest(TELEMETRY))]
    (training,) = TrainingIndex().trainings(known)
    assert set(training.recordings) == {TRACE, TELEMETRY}
    assert training.alert is not None
    assert (training.alert.cause, training.alert.leads) == ("growing_memory", True)


def test_without_a_problem_there_is_no_alert() -> None:
    (training,) = TrainingIndex().trainings([(TRACE, digest(TRACE)), (TELEMETRY, digest(TELEMETRY))])
    assert training.alert is None
