"""Tests first-time work of operators, operators that compute on the host, and evaluations in the loop.

Recordings with an evaluation have three steps of 10 ms, one of them with an evaluation of 5 ms.
"""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.attribution.host_operators import inline_evaluations
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


EVAL, TRAIN = (f"torch/nn/modules/module.py({line}): {name}" for line, name in ((2907, "eval"), (2885, "train")))
ROW = {"ph": "X", "pid": 1, "tid": 1}


def row(category, name, begin_us, length_us, **more):
    return ROW | {"cat": category, "name": name, "ts": begin_us, "dur": length_us} | more


def recorded(tmp_path, *frames, optimizer=True, inside=()):
    events = [row("user_annotation", f"ProfilerStep#{step}", step * 10_000, 9_999) for step in range(3)]
    for step in range(3):
        events += [row("cpu_op", "aten::mm", step * 10_000 + 100 * part, 90) for part in range(1, 99)]
        if optimizer:
            events.append(row("cpu_op", "autograd::engine::evaluate_function: MmBackward0", step * 10_000 + 3_200, 500))
            events.append(row("user_annotation", "Optimizer.step#SGD.step", step * 10_000 + 3_800, 100))
    events.append(row("cpu_op", "aten::mm", 14_500, 4_000))
    events += [row("python_function", name, begin, length) for name, begin, length in frames]
    events += inside
    path = tmp_path / "a.pt.trace.json"
    path.write_text(json.dumps({"deviceProperties": [], "with_stack": 1, "traceEvents": events}))
    return str(path)


FRAMES = ((EVAL, 14_000, 50), (TRAIN, 14_010, 30), (TRAIN, 19_000, 50))


def test_an_evaluation_lasts_from_eval_to_the_next_train_that_is_not_part_of_it(tmp_path):
    found = inline_evaluations(load(recorded(tmp_path, *FRAMES)))
    assert found.end.tolist() == [19_000_000]
    report = diagnose(recorded(tmp_path, *FRAMES))
    assert report.verdict.regime == "interruption"
    assert report.findings[0].cause == "evaluation"
    assert report.findings[0].cost_share == pytest.approx(5 / 30, abs=0.01)


NONE = {
    "no train": {"frames": FRAMES[:2]},
    "no training at all": {"frames": FRAMES, "optimizer": False},
    "a backward pass in between": {
        "frames": FRAMES,
        "inside": [row("cpu_op", "autograd::engine::evaluate_function: AddBackward0", 16_000, 100)],
    },
    "another thread": {"frames": FRAMES[:2], "inside": [row("python_function", TRAIN, 19_000, 50, tid=2)]},
}


@pytest.mark.parametrize("name", NONE)
def test_other_uses_of_the_mode_are_no_evaluation(tmp_path, name):
    options = dict(NONE[name])
    assert not len(inline_evaluations(load(recorded(tmp_path, *options.pop("frames"), **options))).rows)
