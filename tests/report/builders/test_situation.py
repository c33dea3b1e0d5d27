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
    ("rows", "model", "data", "following"),
    [
        ((LARGE, COMPLEX), "large for this GPU", "Its data is complex", "--device"),
        ((LARGE, f"loader {('#' + '.' * 39) * 2}"), "large for this GPU", "Its data is simple", "more devices"),
        ((LARGE, WORKERS), "large for this GPU", "Worker processes create its batches", "max-autotune"),
        ((SMALL, COMPLEX), "small for this GPU", "Its data is complex", "--batch"),
        ((SMALL,), "small for this GPU", "shows no DataLoader", "larger batch"),
    ],
)
def test_the_situation_of_model_and_data(tmp_path, rows, model, data, following):
    text = said(tmp_path, *rows, BACKWARD)
    assert model in text
    assert data in text
    assert following in text
    assert "$" not in text


def test_a_cpu_run_is_told_of_a_gpu_and_not_of_predictions_that_do_not_exist(tmp_path):
    text = said(tmp_path, ON_THE_CPU, BACKWARD, deviceProperties=[])
    assert "for this CPU" in text
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
    assert "most of the recording" in text
    fix = {reason.code: reason.fix for reason in diagnose(str(path)).health.reasons}["not_cut_into_steps"]
    assert "model(batch)" in fix
    assert "train" not in fix


PROBLEM = Conclusion(Regime.INPUT, 0.4, "critical")
STARVED = f"loader {('##########' + '.' * 10) * 4}"
LONG, SHORT = f"gpu {('.' * 10 + 'aaabbbcccc') * 4}", f"gpu {('.' * 16 + 'aabb') * 4}"
DISPATCHED = f"dispatch {('.' * 10 + '######....') * 4}"


@pytest.mark.parametrize(
    ("rows", "situation"),
    [
        ((STARVED, LONG), "large for this GPU, and its data is complex"),
        ((STARVED, SHORT, DISPATCHED), "small for this GPU, and its data is complex: the processor limits"),
        ((LARGE,), "large for this GPU; the recording does not show how complex"),
        ((SMALL, f"loader {('#' + '.' * 39) * 2}"), "small for this GPU, and its data is simple"),
    ],
)
def test_a_training_with_a_problem_has_a_situation_without_it(tmp_path, rows, situation):
    more = () if any(row.startswith("dispatch") for row in rows) else (BACKWARD,)
    assert situation in said(tmp_path, *rows, *more, conclusion=PROBLEM)


@pytest.mark.parametrize("conclusion", [PROBLEM, Conclusion(Regime.UNEXPLAINED, 0.4, "none")])
def test_an_inference_with_a_problem_or_a_run_with_open_questions_has_no_situation(tmp_path, conclusion):
    assert said(tmp_path, LARGE, conclusion=conclusion) == ""


def test_an_optimizer_alone_shows_nothing_of_the_model(tmp_path, monkeypatch):
    optimizer = ("user_annotation", "Optimizer.step#Adam.step")
    monkeypatch.setitem(__import__("helpers.draw").draw.HOST_ROWS, "dispatch", optimizer)
    assert said(tmp_path, SMALL, BACKWARD, conclusion=PROBLEM) == ""
    assert "training" in said(tmp_path, SMALL, BACKWARD), "without a problem, it is one"


def test_the_report_states_it_and_what_was_not_judged(tmp_path):
    report = diagnose(write(tmp_path, LARGE))
    assert report.verdict.severity == "none"
    text = " ".join(render(report).split())
    assert "The model is large for this GPU" in text
    assert "What was checked - Waiting for data: Cannot tell: no DataLoader iteration was recorded" in text
    waits = diagnose(write(tmp_path, f"loader {('#' * 10 + '.' * 10) * 4}", f"gpu {('.' * 10 + 'aaaabbbccc') * 4}"))
    assert not waits.verdict.HasField("situation")
