"""The time of optimizers, without the closures and hooks that their steps call."""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.attribution.training_detection import OPTIMIZER, OPTIMIZER_STEP, optimizer_time
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.trace.trace import load

STEP = ("user_annotation", "Optimizer.step#AdamW.step", 0, 1000)
ZERO_GRAD = ("user_annotation", "Optimizer.zero_grad#AdamW.zero_grad", 150, 50)
BACKWARD = ("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 400, 100)
TORCH_STEP = ("python_function", "torch/optim/adamw.py(161): step", 10, 980)
OWN_STEP = ("python_function", "optimizers/shampoo.py(31): step", 10, 980)


def _trace(tmp_path, *rows):
    events = [
        {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur}
        for category, name, ts, dur in rows
    ]
    path = tmp_path / "t.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return load(str(path))


def _frame(name, ts, dur):
    return ("python_function", name, ts, dur)


@pytest.mark.parametrize(
    ("rows", "own_us"),
    [
        ([], [(0, 1000)]),
        ([TORCH_STEP], [(0, 1000)]),
        # Without frames, the closure ends with the backward pass.
        ([BACKWARD], [(500, 1000)]),
        # What the closure does after the backward pass is not the optimizer's either.
        ([TORCH_STEP, BACKWARD, _frame("train.py(8): closure", 100, 600)], [(0, 100), (700, 1000)]),
        ([TORCH_STEP, BACKWARD, _frame("lightning/pytorch/precision.py(9): _wrap", 100, 600)], [(0, 100), (700, 1000)]),
        # A hook needs no backward pass.
        ([_frame("train.py(8): log_norms", 5, 100), TORCH_STEP], [(0, 5), (105, 1000)]),
        # The functions of the program's own optimizer belong to it; the closure it calls does not.
        ([OWN_STEP, _frame("optimizers/shampoo.py(90): root", 200, 500)], [(0, 1000)]),
        ([OWN_STEP, BACKWARD, _frame("train.py(8): closure", 100, 600)], [(0, 100), (700, 1000)]),
        ([TORCH_STEP, _frame("contextlib.py(132): __enter__", 100, 600)], [(0, 1000)]),
    ],
)
def test_closures_and_hooks_are_not_the_optimizers(tmp_path, rows, own_us):
    spans = optimizer_time(_trace(tmp_path, STEP, *rows), OPTIMIZER_STEP)
    found = [(begin / 1000, end / 1000) for begin, end in zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)]
    assert found == own_us


def test_setting_gradients_to_zero_in_a_closure_is_the_optimizers(tmp_path):
    trace = _trace(tmp_path, STEP, ZERO_GRAD, BACKWARD)
    assert optimizer_time(trace, OPTIMIZER).total() == 550_000
    assert optimizer_time(trace, OPTIMIZER_STEP).total() == 500_000


def test_another_steps_backward_pass_makes_no_closure(tmp_path):
    later = ("user_annotation", "Optimizer.step#AdamW.step", 2000, 100)
    earlier = ("cpu_op", BACKWARD[1], -500, 100)
    trace = _trace(tmp_path, STEP, later, earlier)
    assert optimizer_time(trace, OPTIMIZER_STEP).total() == 1_100_000


SLEEPS_IN_THE_CLOSURE = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    op      .......#.#.......#.#.......#.#.......#.#
    gpu     .......a.b.......c.d.......e.f.......g.h
"""


@pytest.mark.parametrize("stacks", [False, True])
def test_sleeping_in_a_closure_is_python_and_not_the_optimizer(tmp_path, stacks):
    whole = drawn(SLEEPS_IN_THE_CLOSURE, 1000, with_stack=int(stacks))
    row = {"ph": "X", "pid": 100, "tid": 100}
    for at in range(0, 40_000, 10_000):
        whole["traceEvents"] += [
            row | {"cat": STEP[0], "name": STEP[1], "ts": at + 100, "dur": 9_800},
            row | {"cat": BACKWARD[0], "name": BACKWARD[1], "ts": at + 7_100, "dur": 800},
        ]
        if stacks:
            whole["traceEvents"] += [
                row | {"cat": "python_function", "name": "train.py(8): closure", "ts": at + 200, "dur": 7_800}
            ]
    path = tmp_path / "closure.pt.trace.json"
    path.write_text(json.dumps(whole))
    report = diagnose(str(path))
    assert report.verdict.regime == "host"
    assert report.verdict.share > 0.5
