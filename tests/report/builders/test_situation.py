"""A run without a problem is told which of the known situations it is in, and what can still be changed."""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.judge import Conclusion
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.report.builders.situation import situation_of
from tb_bottleneck.text.report import render
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

STEPS = f"step {''.join(letter * 20 for letter in 'abcd')}"
# Three kernels of each step fill the device (`gpu`) or not (`small`); the loader takes a tenth of the step, or nothing.
LARGE, SMALL = f"gpu {'aaaaaabbbbbbcccccccc' * 4}", f"small {'aaaaaabbbbbbcccccccc' * 4}"
COMPLEX, WORKERS = f"loader {('##' + '.' * 18) * 4}", f"workers {('##' + '.' * 18) * 4}"
ON_THE_CPU = f"op {'aaaaaaabbbbbbbcccccc' * 4}"
# A backward pass, which makes the recording a training.
BACKWARD = f"dispatch {('.' * 19 + '#') * 4}"
NONE = Conclusion(Regime.COMPUTE, 0.9, "none")


def write(tmp_path, *rows, **header):
    path = tmp_path / "t.pt.trace.json"
    path.write_text(json.dumps(drawn("\n".join((STEPS, *rows)), 1000, **header)))
    return str(path)


def said(tmp_path, *rows, conclusion=NONE, **header):
    trace = load(write(tmp_path, *rows, **header))
    return situation_of(Measures(Recording(trace, find_steps(trace))), conclusion)


@pytest.mark.parametrize(
    ("rows", "work", "data", "following"),
    [
        ((LARGE, COMPLEX), "for 100 %", "spends much of each step on loading", "--device"),
        ((LARGE, f"loader {('#' + '.' * 39) * 2}"), "for 100 %", "in little time", "more devices"),
        ((LARGE, WORKERS), "for 100 %", "Worker processes create its batches", "max-autotune"),
        ((SMALL, COMPLEX), "for 0 %", "spends much of each step on loading", "--batch"),
        ((SMALL,), "for 0 %", "A larger batch", "larger batch"),
    ],
)
def test_the_situation_of_work_and_data(tmp_path, rows, work, data, following):
    text = said(tmp_path, *rows, BACKWARD)
    assert f"The GPU works at full size {work}" in text
    assert data in text
    assert following in text
    assert "$" not in text


def test_a_cpu_run_is_told_of_a_gpu_and_not_of_predictions_that_do_not_exist(tmp_path):
    text = said(tmp_path, ON_THE_CPU, BACKWARD, deviceProperties=[])
    assert "The CPU works at full size for " in text
    assert "A GPU" in text
    assert "more machines" in text
    assert "what-if" not in text


@pytest.mark.parametrize("rows", [(LARGE,), (SMALL,), (ON_THE_CPU,)])
def test_an_inference_gets_no_advice_for_trainings(tmp_path, rows):
    text = said(tmp_path, *rows)
    assert "training" not in text
    assert "--batch" not in text
    assert "more devices" not in text
    assert "each step" in text


def test_without_steps_nothing_is_said_of_a_step(tmp_path):
    path = tmp_path / "t.pt.trace.json"
    path.write_text(json.dumps(drawn("op    ##..................\ngpu   ..aabbccddeeffgghhii", 1000)))
    trace = load(str(path))
    steps = find_steps(trace)
    assert steps.basis == "whole"
    text = situation_of(Measures(Recording(trace, steps)), NONE)
    assert "step" not in text
    assert " of the recording." in text
    fix = {reason.code: reason.fix for reason in diagnose(str(path)).health.reasons}["not_cut_into_steps"]
    assert "model(batch)" in fix
    assert "train" not in fix


PROBLEM = Conclusion(Regime.INPUT, 0.4, "critical")


@pytest.mark.parametrize("conclusion", [PROBLEM, Conclusion(Regime.UNEXPLAINED, 0.4, "none")])
def test_a_run_with_a_problem_or_with_open_questions_has_no_situation(tmp_path, conclusion):
    assert said(tmp_path, LARGE, BACKWARD, conclusion=conclusion) == ""


def test_the_report_states_it_and_what_was_not_judged(tmp_path):
    report = diagnose(write(tmp_path, LARGE))
    assert report.verdict.severity == "none"
    text = " ".join(render(report).split())
    assert "The GPU works at full size for " in text
    assert "What was checked - Waiting for data: Cannot tell: no DataLoader iteration was recorded" in text
    waits = diagnose(write(tmp_path, f"loader {('#' * 10 + '.' * 10) * 4}", f"gpu {('.' * 10 + 'aaaabbbccc') * 4}"))
    assert not waits.verdict.HasField("situation")
