"""The recordings of a scan are taken over once; predictions of one rank agree with those of ranks of equal account."""

import threading

import pytest

from tb_bottleneck.plugin.state.recording_registry import RecordingRegistry
from tb_bottleneck.plugin.state.telemetry_registry import TelemetryRegistry
from tb_bottleneck.plugin.workers.analysis_queue import DONE, WAITING, AnalysisQueue
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.sources.logdir import RecordingFile
from tb_bottleneck.workers.ipc import WorkerLimits


class Analyses:
    """Reports that exist already; all other recordings wait for their analysis."""

    def __init__(self, reports):
        self._reports = reports

    def want(self, recordings, on_request=frozenset()):
        """Nothing is analysed."""

    def look(self, recording):
        report = self._reports.get(recording)
        return (DONE, Digest.of(report)) if report is not None else (WAITING, None)

    def report(self, recording):
        return self._reports.get(recording, WAITING)


def recording(number):
    return RecordingFile(f"/logs/rank{number}.pt.trace.json", "moe", f"rank{number}.pt.trace.json", 7, 1)


def rank(number, gain, communication=0.9):
    report = pb.Report(run="moe", rank=number, world_size=4, evidence_source="trace")
    report.account.add(regime="communication", share=communication)
    report.account.add(regime="compute", share=1 - communication)
    report.verdict.MergeFrom(pb.Verdict(regime="communication"))
    report.findings.add(cause="exposed_all_to_all", speedup=pb.Speedup(expected=gain, basis="replay"))
    return report


def shown(reports, number):
    """The gain that the registry shows for one rank."""
    registry = RecordingRegistry(Analyses({recording(rank): report for rank, report in reports.items()}), Analyses({}))
    registry.want([recording(rank) for rank in range(4)])
    return registry.report(recording(number)).findings[0].speedup.expected


def test_all_equal_ranks_show_the_same_gain():
    reports = {0: rank(0, 1.8), 1: rank(1, 1.0), 2: rank(2, 1.9)}
    assert [shown(reports, number) for number in reports] == [pytest.approx(1.8)] * 3


def test_ranks_that_are_not_analysed_yet_or_have_another_account_do_not_matter():
    reports = {0: rank(0, 1.8), 1: rank(1, 1.0, communication=0.4)}
    assert shown(reports, 0) == 1.8
    assert shown(reports, 1) == 1.0


class Slow(Analyses):
    """Takes over recordings until it is released, and counts how often."""

    def __init__(self):
        super().__init__({})
        self.count, self.began, self.released = 0, threading.Event(), threading.Event()
        self.wanted = []

    def want(self, recordings, on_request=frozenset()):
        self.count += 1
        self.wanted.append(set(recordings))
        self.began.set()
        assert self.released.wait(10)


def test_one_request_takes_over_a_new_scan_and_the_others_do_not_wait():
    analyses = Slow()
    registry, scan = RecordingRegistry(analyses, Analyses({})), tuple(recording(rank) for rank in range(4))
    first = threading.Thread(target=registry.want, args=(scan,))
    first.start()
    assert analyses.began.wait(10)
    registry.want(scan)
    assert analyses.count == 1
    analyses.released.set()
    first.join(10)
    registry.want(scan)
    assert analyses.count == 2, "each request says that somebody still asks"


def test_a_request_that_began_before_the_last_scan_ended_does_not_bring_the_scan_before_back():
    analyses = Slow()
    analyses.released.set()
    registry = RecordingRegistry(analyses, Analyses({}))
    before, after = (tuple(recording(rank) for rank in range(count)) for count in (3, 4))
    for scan in (before, after, before):
        registry.want(scan)
    assert analyses.wanted == [set(before), set(after)]


def test_a_recording_of_a_scan_that_is_not_taken_over_yet_has_its_own_report():
    assert RecordingRegistry(Analyses({recording(0): rank(0, 1.8)}), Analyses({})).report(recording(0)).rank == 0


TRACE = RecordingFile("/logs/a/own.pt.trace.json", "a", "own.pt.trace.json", 7, 1)
EVENTS = "events.out.tfevents.1.2.0"


def series(process):
    folder = f"/logs/a/tb_bottleneck/20261121-110503_rank0_{process}"
    return RecordingFile(f"{folder}/{EVENTS}", "a/tb_bottleneck", EVENTS, 7, 1)


def test_a_snapshot_beside_a_trace_is_joined_with_nothing():
    snapshot = RecordingFile("/logs/a/rank0.pickle", "a", "rank0.pickle", 7, 1, is_snapshot=True)
    monitor = series(4711)
    judged = pb.Verdict(regime="host", severity="warning", share=0.3, confidence="high")
    trace = pb.Report(run="a", evidence_source="trace", verdict=judged)
    memory = pb.Report(run="a", evidence_source="snapshot", memory=pb.Memory(peak_bytes=5))
    telemetry = pb.Report(run="a", evidence_source="telemetry", verdict=pb.Verdict(regime="unexplained"))
    registry = RecordingRegistry(Analyses({TRACE: trace, snapshot: memory}), Analyses({monitor: telemetry}))
    registry.want([TRACE, snapshot, monitor])
    assert registry.report(snapshot) == memory
    assert registry.report(TRACE).evidence_source == "both"


@pytest.mark.parametrize(("processes", "joined"), [((4711,), True), ((4711, 4712), False)], ids=["one", "two"])
def test_a_trace_of_the_trainings_own_profiler_is_joined_with_the_only_monitor_of_its_logdir(processes, joined):
    judged = pb.Verdict(regime="host", severity="warning", share=0.3, confidence="high")
    trace = pb.Report(run="a", evidence_source="trace", verdict=judged)
    unknown = pb.Verdict(regime="unexplained", severity="none", share=1.0, confidence="low")
    telemetry = pb.Report(run="a", evidence_source="telemetry", verdict=unknown)
    runs = [series(process) for process in processes]
    registry = RecordingRegistry(Analyses({TRACE: trace}), Analyses(dict.fromkeys(runs, telemetry)))
    registry.want([TRACE, *runs])
    assert (registry.report(TRACE).evidence_source == "both") == joined
    assert (registry.report(runs[0]).verdict.regime == "host") == joined


class CountedFile(RecordingFile):
    """Counts how often a recording of it is looked up."""

    lookups = 0

    def __hash__(self):
        CountedFile.lookups += 1
        return super().__hash__()


def test_a_request_costs_the_same_for_any_number_of_recordings():
    """Fifty clients ask every second, and the logdir may have 8,000 recordings: only a scan may look at all of them."""
    registry = RecordingRegistry(AnalysisQueue("no analysis", WorkerLimits(processes=0)), TelemetryRegistry())
    files = tuple(CountedFile(f"/logs/{n}.pt.trace.json", "", f"{n}.pt.trace.json", 7, 1) for n in range(1_000))
    registry.want(files)
    CountedFile.lookups = 0
    for _ in range(10):
        registry.want(files)
        registry.report(files[5])
    assert 0 < CountedFile.lookups < 200
    registry.want(files[:-1])
    assert CountedFile.lookups > 900, "another scan"
    assert registry.look(files[0])[0] == WAITING
