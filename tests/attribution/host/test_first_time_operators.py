"""Operators that do first-time work: one call takes far longer by itself than all others of its name."""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

ONCE = """
    op      ####################.####.####.####.####
    launch  ...................|..|....|....|...|...
    gpu     ....................ab...c....d....e....
"""
ALWAYS = """
    op      ########.########.########.########.####
    launch  .......|........|........|........|...|.
    gpu     ........a........b........c........d...e
"""


def written(tmp_path, drawing, extra=()):
    whole = drawn(drawing, 5000)
    path = tmp_path / "first.pt.trace.json"
    path.write_text(json.dumps(whole | {"traceEvents": [*whole["traceEvents"], *extra]}))
    return str(path)


def first_time(path):
    trace = load(path)
    steps = find_steps(trace)
    host = Recording(trace, steps).host
    return host._first_time.total() / 1e6


def test_a_call_that_takes_long_once_is_first_time_work(tmp_path):
    """Of 100 ms, the launch at the end takes 5; the other calls take 20 ms each."""
    assert first_time(written(tmp_path, ONCE)) == pytest.approx(95)


def test_one_that_takes_long_each_time_is_not(tmp_path):
    assert first_time(written(tmp_path, ALWAYS)) == 0


def test_frames_inside_explain_the_time(tmp_path):
    frame = {"ph": "X", "cat": "python_function", "name": "train.py(7): forward", "pid": 100, "tid": 100}
    assert first_time(written(tmp_path, ONCE, [{**frame, "ts": 1000, "dur": 80_000}])) == 0


def test_marks_of_phases_are_not_operators(tmp_path):
    mark = {"ph": "X", "cat": "cpu_op", "name": "ProfilerStep#3", "pid": 100, "tid": 100, "ts": 0, "dur": 200_000}
    assert first_time(written(tmp_path, ALWAYS, [mark])) == 0


def test_a_recording_of_it_shows_a_start_up(tmp_path):
    drawing = """
        op      ##.##.####################.##.##.##.####
        launch  .|..|....................|..|..|..|.||..
        gpu     ..a..b....................c..d..e..f.gh.
    """
    report = diagnose(written(tmp_path, drawing))
    assert report.health.reasons[0].code == "warmup"
