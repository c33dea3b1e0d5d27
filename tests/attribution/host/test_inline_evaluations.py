"""Evaluations between `eval()` and `train()`: recordings of three steps of 10 ms, one with an evaluation of 5 ms."""

import json

import pytest

from tb_bottleneck.attribution.host_operators import inline_evaluations
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.trace.trace import load

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
