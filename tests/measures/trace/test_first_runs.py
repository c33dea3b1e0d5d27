"""Code that runs for the first time: once at a start-up, or again in each step, on a device and on the CPU."""

import json

import pytest
from helpers.draw import drawn
from helpers.verdict_findings import first_of_verdict

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.trace.uneven_steps import first_runs_of, first_runs_recur
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
