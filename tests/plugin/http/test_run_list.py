"""Tests of the list of recordings: only changed parts are built again."""

import json
from types import SimpleNamespace

import pytest

from tb_bottleneck.plugin.http.run_list import RunListBuilder
from tb_bottleneck.plugin.state.run_index import LogdirScan
from tb_bottleneck.plugin.workers.analysis_queue import DONE, WAITING, AnalysisState
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.schema.bottleneck_pb2 import Health, Report, Verdict
from tb_bottleneck.sources.logdir import Listing, RecordingFile

A, B = (RecordingFile(f"/logs/{name}.json", ".", f"{name}.json", 7, 1) for name in "ab")
HALF = AnalysisState("analysing", 0.5)


def digest(share: float) -> Digest:
    return Digest.of(Report(verdict=Verdict(regime="input", share=share), health=Health(status="ok")))


class Progress(dict[RecordingFile, tuple[AnalysisState, Digest | None]]):
    """The progress of each recording, as the test sets it."""

    jobs = ()

    def look(self, recording: RecordingFile) -> tuple[AnalysisState, Digest | None]:
        return self[recording]


def scan(*recordings: RecordingFile, problems: tuple[str, ...] = ()) -> LogdirScan:
    return LogdirScan(Listing(recordings, problems), {})


def run_list(lists: RunListBuilder, at: LogdirScan | None) -> SimpleNamespace:
    return json.loads(lists.text(at), object_hook=lambda values: SimpleNamespace(**values))


def test_before_the_first_scan_has_ended_the_list_is_scanning() -> None:
    answer = run_list(RunListBuilder("/logs", Progress()), None)  # type: ignore[arg-type]
    assert (answer.state, answer.logdir, answer.runs, answer.problems) == ("scanning", "/logs", [], [])


def test_each_answer_has_the_current_state() -> None:
    progress = Progress({A: (WAITING, None), B: (WAITING, None)})
    lists, first = RunListBuilder("/logs", progress), scan(A, B, problems=("a",))  # type: ignore[arg-type]
    assert [run.state for run in run_list(lists, first).runs] == ["waiting", "waiting"]
    progress[A] = (HALF, None)
    assert [(run.state, run.progress) for run in run_list(lists, first).runs] == [("analysing", 0.5), ("waiting", 0.0)]
    progress[A] = (DONE, digest(0.4))
    assert run_list(lists, first).runs[0].verdict.share == 0.4
    progress[A] = (DONE, digest(0.3))
    answer = run_list(lists, first)
    assert (answer.runs[0].verdict.share, answer.problems) == (0.3, ["a"])
    assert [run.source for run in run_list(lists, scan(B)).runs] == ["b.json"]
    assert run_list(lists, scan(B, problems=("b",))).problems == ["b"]
    assert run_list(lists, None).state == "scanning"


def test_each_recording_has_its_evidence_source() -> None:
    events = RecordingFile("/logs/events.out.tfevents.1", ".", "events.out.tfevents.1", 7, 1)
    snapshot = RecordingFile("/logs/a.pickle", ".", "a.pickle", 7, 1, is_snapshot=True)
    progress = Progress(dict.fromkeys((A, events, snapshot), (WAITING, None)))
    lists = RunListBuilder("/logs", progress)  # type: ignore[arg-type]
    runs = run_list(lists, scan(A, events, snapshot)).runs
    assert [run.evidence_source for run in runs] == ["trace", "telemetry", "snapshot"]


def test_what_did_not_change_is_not_made_again() -> None:
    progress = Progress({A: (DONE, digest(0.4)), B: (WAITING, None)})
    lists, first = RunListBuilder("/logs", progress), scan(A, B)  # type: ignore[arg-type]
    text = lists.text(first)
    assert lists.text(first) is text
    rows = lists._last.rows
    progress[B] = (DONE, digest(0.1))
    lists.text(scan(A, B))
    assert lists._last.rows[A] is rows[A]
    assert lists._last.rows[B] is not rows[B]


def test_an_invalid_number_is_refused() -> None:
    progress = Progress({A: (DONE, digest(float("nan")))})
    with pytest.raises(ValueError, match="share"):
        RunListBuilder("/logs", progress).text(scan(A))  # type: ignore[arg-type]
