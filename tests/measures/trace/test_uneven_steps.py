"""Tests code that runs for the first time, once or in each step, and steps that are much longer than the others."""

import json

import pytest
from helpers.draw import drawn, drawn_trace
from helpers.verdict_findings import first_of_verdict

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.trace.uneven_steps import (
    first_runs_of,
    first_runs_recur,
    uneven_step_factor,
    uneven_step_operators,
    uneven_steps,
    unexplained_excess,
)
from tb_bottleneck.text.report import render
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

ON_DEVICE = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee
    op      ##################################################
    gpu     .......abc.......def.......ghi.......jkl.......mno
"""
ON_CPU = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeee
    op      #.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.#.
"""


def compiling(tmp_path, drawing, steps, category="cpu_op"):
    """The drawing with 6 of the 10 ms of these steps spent in compiling."""
    whole, path = drawn(drawing, 1000), tmp_path / "compiled.pt.trace.json"
    row = {"ph": "X", "cat": category, "name": "_compile.compile_inner (dynamo_timed)", "pid": 100, "tid": 100}
    whole["traceEvents"] += [row | {"ts": 10_000 * step + 500, "dur": 6000} for step in steps]
    if drawing is ON_CPU:
        whole["deviceProperties"] = []
    path.write_text(json.dumps(whole))
    return path


@pytest.mark.parametrize("drawing", [ON_DEVICE, ON_CPU])
@pytest.mark.parametrize("category", ["cpu_op", "user_annotation"])
def test_compiling_in_every_step_is_no_start_that_is_over(tmp_path, drawing, category):
    path = compiling(tmp_path, drawing, range(5), category)
    trace = load(str(path))
    recording = Recording(trace, find_steps(trace))
    begin, end, starting = first_runs_of(recording)
    assert len(begin) == len(end) == len(recording.steps)
    assert starting.sum() == pytest.approx(6e6 * len(recording.steps), rel=0.02)
    assert first_runs_recur(recording, 0.25)
    report = diagnose(str(path))
    assert (report.verdict.regime, first_of_verdict(report).cause) == ("interruption", "first_runs")
    assert "starting" not in [reason.code for reason in report.health.reasons]
    assert first_of_verdict(report).cost_share == pytest.approx(0.6, abs=0.03)


@pytest.mark.parametrize("drawing", [ON_DEVICE, ON_CPU])
def test_compiling_in_the_first_steps_is_one(tmp_path, drawing):
    path = compiling(tmp_path, drawing, (0, 1, 2))
    trace = load(str(path))
    assert not first_runs_recur(Recording(trace, find_steps(trace)), 0.25)
    report = diagnose(str(path))
    assert (report.health.status, report.health.reasons[0].code) == ("incomplete", "warmup")


def test_one_step_does_not_show_if_it_recurs(tmp_path):
    trace = load(str(compiling(tmp_path, ON_DEVICE.replace("step", "loader"), (0, 1, 2, 3, 4))))
    steps = find_steps(trace)
    assert steps.basis == "whole"
    assert not first_runs_recur(Recording(trace, steps), 0.25)


# Steps of 10 ms with two operators; the third step evaluates for 30 ms more, with six operators, which no frame shows.
EVALUATES = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccccccccccccccccccccccccccccccccddddddddddeeeeeeeeee
    op      aaaaabbbbbaaaaabbbbbaaaaabbbbbcccccdddddcccccdddddcccccdddddaaaaabbbbbaaaaabbbbb
"""
# The same, with the same two operators in each step.
SLOWER = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccccccccccccccccccccccccccccccccddddddddddeeeeeeeeee
    op      aaaaabbbbbaaaaabbbbbaaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbaaaaabbbbbaaaaabbbbb
"""
# The third step waits for its batch instead.
WAITS = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccccccccccccccccccccccccccccccccddddddddddeeeeeeeeee
    loader  ....................##############################..............................
    op      aaaaabbbbbaaaaabbbbb..............................aaaaabbbbbaaaaabbbbbaaaaabbbbb
"""
# Frames were recorded: one runs in every step, the other one only in the long step.
FRAMES = """
    python  ####......####......####................................####......####..........
"""


def recorded(drawing, **header):
    trace = drawn_trace(drawing, 1000, deviceProperties=[], **header)
    return Recording(trace, find_steps(trace))


def report_of(tmp_path, drawing):
    path = tmp_path / "drawn.pt.trace.json"
    path.write_text(json.dumps(drawn(drawing, 1000, deviceProperties=[])))
    return diagnose(str(path))


@pytest.mark.parametrize(("drawing", "operators"), [(EVALUATES, "4"), (SLOWER, "1")])
def test_a_long_step_is_more_work_or_the_same_work_more_slowly(drawing, operators):
    recording = recorded(drawing)
    assert uneven_steps(recording).value == 1
    assert uneven_step_factor(recording).text == "4"
    assert unexplained_excess(recording).value == pytest.approx(30 / 80)
    assert uneven_step_operators(recording).text == operators
    begin = recording.steps.edges[2]
    assert (uneven_steps(recording).begin, uneven_steps(recording).end) == (begin, begin + 40_000_000)


def test_a_wait_of_a_known_kind_is_explained():
    recording = recorded(WAITS)
    assert uneven_steps(recording).value == 1
    assert unexplained_excess(recording).value == 0


def test_even_steps_have_none():
    recording = recorded(EVALUATES.replace("c" * 40, "c" * 10).replace("cccccddddd" * 3, "", 1))
    assert isinstance(unexplained_excess(recording), Missing)
    assert isinstance(uneven_steps(recording), Missing)


def test_the_lines_that_run_in_long_steps_only_are_named(tmp_path):
    drawing = EVALUATES + FRAMES.strip("\n")
    assert [list(finding.where) for finding in report_of(tmp_path, drawing).findings] == [[]]
    whole = drawn(drawing, 1000, deviceProperties=[])
    frame = next(event for event in whole["traceEvents"] if event["cat"] == "python_function")
    whole["traceEvents"].append(frame | {"name": "train.py(83): check_quality", "ts": 30_000, "dur": 29_000})
    path = tmp_path / "frames.pt.trace.json"
    path.write_text(json.dumps(whole))
    (finding,) = diagnose(str(path)).findings
    assert [(place.file, place.line, place.function) for place in finding.where] == [("train.py", 83, "check_quality")]


def test_uneven_steps_without_a_reason_are_no_all_clear(tmp_path):
    """A training that evaluates in every fourth step, recorded without frames, as in a user's trial."""
    path = tmp_path / "many.pt.trace.json"
    whole = drawn(EVALUATES, 1000, deviceProperties=[])
    path.write_text(json.dumps(whole))
    report = diagnose(str(path))
    text = render(report)
    assert report.verdict.regime == "unexplained"
    assert report.verdict.confidence != "high"
    assert [finding.cause for finding in report.findings] == ["uneven_steps"]
    assert "Long steps (1 of 5) take 4 times as long as the median step" in report.verdict.headline
    assert "It is not known what would save time" in text
    assert "do not name the lines of the program" in " ".join(text.split())
    assert "Nothing would save" not in text
    assert "No problem" not in text


def test_the_wait_leads_if_it_is_the_reason(tmp_path):
    assert report_of(tmp_path, WAITS).verdict.regime == "input"
