"""Steps that are much longer than the others: their number, their share, and what is known about them."""

import json

import pytest
from helpers.draw import drawn, drawn_trace

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.trace.uneven_steps import (
    uneven_step_factor,
    uneven_step_operators,
    uneven_steps,
    unexplained_excess,
)
from tb_bottleneck.report.rendering.text import render
from tb_bottleneck.trace.steps import find_steps

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
