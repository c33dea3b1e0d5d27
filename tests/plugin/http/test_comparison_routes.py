"""What a comparison asks of the process for questions: the recordings, and what a monitor logged beside them."""

from pathlib import PurePosixPath

import pytest
from werkzeug.datastructures import MultiDict

from tb_bottleneck.plugin.http.comparison_routes import MOST_HEARD, Comparisons, Refused, heard_around, question_of
from tb_bottleneck.plugin.state.run_index import LogdirScan, RunIndex
from tb_bottleneck.plugin.workers.question_queue import QuestionQueue
from tb_bottleneck.plugin.workers.worker_limits import WorkerLimits
from tb_bottleneck.sources.logdir import Listing, Recording


def recording(path: str, mtime_ns: int = 1) -> Recording:
    place = PurePosixPath(path)
    return Recording(run=str(place.parent), source=place.name, path=path, size=10, mtime_ns=mtime_ns)


TRACE = recording("/logs/a/x.pt.trace.json")
OURS = recording("/logs/a/tb_bottleneck/now/events.out.tfevents.1.bottleneck", 5)
OTHERS = [
    recording("/logs/b/tb_bottleneck/now/events.out.tfevents.2.bottleneck"),
    recording("/logs/a/deeper/events.out.tfevents.3.bottleneck"),
    recording("/logs/ab/events.out.tfevents.4.bottleneck"),
]


def test_the_monitor_s_file_is_found_beside_its_trace_and_no_other_run_s():
    assert heard_around(TRACE, [TRACE, OURS, *OTHERS]) == [OURS]


def test_of_many_files_the_last_are_heard():
    many = [recording(f"/logs/a/tb_bottleneck/{number}/events.out.tfevents.{number}", number) for number in range(9)]
    assert [one.mtime_ns for one in heard_around(TRACE, many[::-1])] == list(range(9 - MOST_HEARD, 9))


def test_a_file_that_was_replaced_makes_another_question():
    look = LogdirScan(Listing((TRACE, OURS), ()), {})
    asked = question_of("compare", ["1", "2"], [TRACE, TRACE], look)
    newer = question_of("compare", ["1", "2"], [TRACE, recording(TRACE.path, 2)], look)
    assert asked != newer
    assert asked["heard_0_0"] == OURS.path
    assert asked["count"] == 2


@pytest.mark.parametrize(
    "asked",
    [
        {"workers": "-1"},
        {"workers": "²"},
        {"batch": str(1 << 31)},
        {"batch": "000000000000" + "9" * 20},  # only its beginning was looked at
        {"batch": "0" * 5000},
        {"device": "x" * 60_000},  # was kept, with its answer, for every other name that anybody thought of
        {},
    ],
)
def test_what_could_not_be_meant_is_refused_before_anybody_is_asked(asked):
    comparisons = Comparisons(RunIndex(()), QuestionQueue("tests.plugin.fake_answer:answer", WorkerLimits()))
    said = comparisons.what_if(MultiDict({"id": "1", **asked}))
    assert isinstance(said, Refused)
    assert said.code == 400
