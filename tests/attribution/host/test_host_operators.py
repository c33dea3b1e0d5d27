"""Operators that compute on the host: work of the host, or of the input where their result is uploaded next."""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.diagnosis.trace import diagnose

# Per step: an operator of 5 columns, then the calls that launch two kernels.
STEPS = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    op      .#####.....#####.....#####.....#####....
    {calls}
"""
METRICS = """launch  ......||........||........||........||..
    gpu     .......ab........ab........ab........ab."""
UPLOAD = """launch  ......|||.......|||.......|||.......|||.
    h2d     .......#.........#.........#.........#..
    gpu     ........ab........ab........ab........ab"""
INSIDE = """launch  ..||........||........||........||......
    gpu     .......ab........ab........ab........ab."""


def report(tmp_path, calls, name="aten::normal_", extra=()):
    whole = drawn(STEPS.format(calls=calls), 500)
    for event in whole["traceEvents"]:
        if event["cat"] == "cpu_op":
            event["name"] = name
    path = tmp_path / "computing.pt.trace.json"
    path.write_text(json.dumps(whole | {"traceEvents": [*whole["traceEvents"], *extra]}))
    return diagnose(str(path))


def shares(judged):
    return {row.regime: row.share for row in judged.account}


def causes(judged):
    return {finding.cause for finding in judged.findings}


def test_an_operator_that_launches_nothing_is_work_of_the_host(tmp_path):
    judged = report(tmp_path, METRICS)
    assert judged.verdict.regime == "host"
    assert judged.findings[0].cause == "host_operators"
    assert "leave the device idle for " in judged.verdict.headline
    assert "$" not in judged.verdict.headline
    assert "aten::normal_" in judged.verdict.headline
    assert shares(judged)["host"] > 0.45


def test_one_with_a_result_that_is_uploaded_next_makes_a_batch(tmp_path):
    judged = report(tmp_path, UPLOAD, "aten::stack")
    assert judged.verdict.regime == "input"
    assert judged.findings[0].cause == "batches_in_the_loop"
    assert "aten::stack on the CPU" in next(line.text for line in judged.findings[0].evidence)


@pytest.mark.parametrize("name", ["aten::normal_", "aten::ones", "aten::fill_"])
def test_constant_and_random_values_can_be_created_on_the_device(tmp_path, name):
    """A step of 10 columns loses 5 for the values and 1 for the copy; the calls and kernels stay."""
    judged = report(tmp_path, UPLOAD, name)
    assert [finding.cause for finding in judged.findings if finding.regime in ("input", "transfer", "sync")] == [
        "created_on_host"
    ]
    assert "device=device" in judged.findings[0].fix.code
    assert judged.findings[0].cost_share > shares(judged)["input"] + 0.09, "the exposed copy is part of the cost"
    assert judged.findings[0].speedup.expected == pytest.approx(10 / 5, abs=0.7)


def test_what_is_computed_before_the_next_fetch_is_no_batch(tmp_path):
    fetch = {
        "ph": "X",
        "cat": "user_annotation",
        "name": "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
    }
    fetches = [{**fetch, "pid": 100, "tid": 100, "ts": 5000 * step + 3000, "dur": 80} for step in range(4)]
    late = UPLOAD.replace("......|||.", ".......|||").replace(".#..", "..#.").replace("ab", ".ab")
    judged = report(tmp_path, late, extra=fetches)
    assert "host_operators" in causes(judged)
    assert shares(judged)["input"] < 0.1


@pytest.mark.parametrize("name", ["aten::empty", "autograd::engine::evaluate_function: MyFunctionBackward", "forward"])
def test_views_and_wrappers_of_python_are_dispatching(tmp_path, name):
    assert report(tmp_path, METRICS, name).verdict.regime == "launch"


def test_an_operator_that_launches_is_dispatching(tmp_path):
    judged = report(tmp_path, INSIDE)
    assert not causes(judged) & {"host_operators", "batches_in_the_loop"}


def test_without_calls_nothing_shows_which_operators_launch(tmp_path):
    whole = drawn(STEPS.format(calls=METRICS), 500)
    events = [event for event in whole["traceEvents"] if event["cat"] != "cuda_runtime"]
    path = tmp_path / "no_calls.pt.trace.json"
    path.write_text(json.dumps(whole | {"traceEvents": events}))
    assert "host_operators" not in causes(diagnose(str(path)))


def test_on_the_cpu_all_operators_are_the_work(tmp_path):
    whole = drawn(STEPS.format(calls=METRICS), 500)
    operators = [event for event in whole["traceEvents"] if event["cat"] in ("cpu_op", "user_annotation")]
    more = [{**event, "ts": event["ts"] + 100, "dur": 50} for event in operators if event["cat"] == "cpu_op"]
    path = tmp_path / "cpu.pt.trace.json"
    path.write_text(json.dumps({"traceEvents": operators + more}))
    assert shares(diagnose(str(path)))["memory"] + shares(diagnose(str(path)))["compute"] > 0.4
