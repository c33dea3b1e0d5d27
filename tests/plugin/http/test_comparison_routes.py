"""Tests of the comparison routes: the telemetry that belongs to a trace, and parameters that are refused."""

from pathlib import PurePosixPath

import pytest
from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from tb_bottleneck.plugin.http.comparison_routes import (
    MAX_TELEMETRY_FILES,
    ComparisonRoutes,
    compared_recording,
    telemetry_beside,
)
from tb_bottleneck.plugin.state.run_index import LogdirScan, RunIndex, id_of
from tb_bottleneck.plugin.workers.question_queue import QuestionQueue
from tb_bottleneck.plugin.workers.questions import TelemetryFile
from tb_bottleneck.sources.logdir import Listing, RecordingFile
from tb_bottleneck.workers.ipc import WorkerLimits


def recording(path: str, mtime_ns: int = 1) -> RecordingFile:
    place = PurePosixPath(path)
    return RecordingFile(run=str(place.parent), source=place.name, path=path, size=10, mtime_ns=mtime_ns)


TRACE = recording("/logs/a/x.pt.trace.json")
OURS = recording("/logs/a/tb_bottleneck/now/events.out.tfevents.1.bottleneck", 5)
OTHERS = [
    recording("/logs/b/tb_bottleneck/now/events.out.tfevents.2.bottleneck"),
    recording("/logs/a/deeper/events.out.tfevents.3.bottleneck"),
    recording("/logs/ab/events.out.tfevents.4.bottleneck"),
]


def test_the_monitor_s_file_is_found_beside_its_trace_and_no_other_run_s():
    assert telemetry_beside(TRACE, [TRACE, OURS, *OTHERS]) == [OURS]


def test_of_many_files_the_newest_are_used():
    many = [recording(f"/logs/a/tb_bottleneck/{number}/events.out.tfevents.{number}", number) for number in range(9)]
    files = telemetry_beside(TRACE, many[::-1])
    assert [file.mtime_ns for file in files] == list(range(9 - MAX_TELEMETRY_FILES, 9))


def test_a_file_that_was_replaced_makes_another_question():
    scan = LogdirScan(Listing((TRACE, OURS), ()), {})
    compared = compared_recording(TRACE, scan)
    assert compared != compared_recording(recording(TRACE.path, 2), scan)
    assert compared.telemetry == (TelemetryFile(OURS.path, OURS.mtime_ns),)
    assert compared.trace.id == id_of(TRACE)


@pytest.mark.parametrize(
    "parameters",
    [
        {"workers": "-1"},
        {"workers": "²"},
        {"batch": str(1 << 31)},
        {"batch": "000000000000" + "9" * 20},  # only its beginning was checked
        {"batch": "0" * 5000},
        {"device": "x" * 60_000},  # was cached, with its answer, for each further name
    ],
)
def test_invalid_parameters_are_refused_without_a_question(parameters):
    routes = ComparisonRoutes(RunIndex(()), QuestionQueue("tests.plugin.fake_answer:answer", WorkerLimits()))
    response = routes.what_if(Request(EnvironBuilder(query_string={"id": "1", **parameters}).get_environ()))
    assert response.code == 400
