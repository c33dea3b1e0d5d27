"""Tests the time of optimizers without closures and hooks, and the distinction of training from inference.

An evaluation during a training interrupts it; in a recording that contains nothing else, it is no interruption.
"""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.attribution.training_detection import (
    OPTIMIZER,
    OPTIMIZER_STEP,
    has_model,
    has_training,
    optimizer_time,
)
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


# Kernels of 1 ms, each launched long after the previous one has finished.
SPARSE = """
    step    aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    op      ########################################
    gpu     .a...b...c...d...e...f...g...h...i...j..
"""


def judged(tmp_path, name, others=(), kind="user_annotation"):
    """Returns the report of SPARSE inside a row with this name, with additional operators named `others`."""
    whole = drawn(SPARSE, 1000)
    row = {"ph": "X", "cat": kind, "name": name, "pid": 100, "tid": 100, "ts": -10, "dur": 40_020}
    operators = [
        row | {"cat": "cpu_op", "name": other, "ts": 1000 + 10 * n, "dur": 5} for n, other in enumerate(others)
    ]
    whole["traceEvents"] = [*whole["traceEvents"], row, *operators]
    path = tmp_path / "evaluated.pt.trace.json"
    path.write_text(json.dumps(whole | {"with_stack": 1}))
    return diagnose(str(path))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("evaluate", "user_annotation"),
        ("Validation", "user_annotation"),
        ("[pl][profile][_EvaluationLoop].val_next", "user_annotation"),
        ("[pl][profile][Strategy]SingleDeviceStrategy.validation_step", "user_annotation"),
        ("transformers/trainer.py(4147): evaluate", "python_function"),
        ("imagenet/main.py(405): validate", "python_function"),
        ("lightning/pytorch/loops/evaluation_loop.py(122): run", "python_function"),
    ],
)
def test_an_evaluation_alone_is_no_interruption(tmp_path, name, kind):
    assert judged(tmp_path, name, kind=kind).verdict.regime == "launch"
    amid_training = judged(tmp_path, name, ["autograd::engine::evaluate_function: AddmmBackward0"], kind)
    assert amid_training.verdict.regime == "interruption"
    assert [finding.cause for finding in amid_training.findings] == ["evaluation"], "whatever its name's case"


@pytest.mark.parametrize("name", ["pydantic/main.py(7): validate", "train.py(9): train_epoch"])
def test_similar_names_interrupt_nothing(tmp_path, name):
    report = judged(tmp_path, name, ["autograd::engine::evaluate_function: AddmmBackward0"], "python_function")
    assert report.verdict.regime == "launch"


def test_a_checkpoint_interrupts_any_run(tmp_path):
    assert judged(tmp_path, "save_checkpoint").verdict.regime == "interruption"


@pytest.mark.parametrize(
    ("name", "is_training"),
    [
        ("autograd::engine::evaluate_function: AddmmBackward0", True),
        ("CompiledFunctionBackward", True),
        ("Optimizer.step#AdamW.step", True),
        ("aten::linear", False),
        ("torch/optim/optimizer.py(300): wrapper", False),
    ],
)
def test_a_training_is_recognised_by_its_backward_pass_or_optimizer(tmp_path, name, is_training):
    whole, path = drawn(SPARSE, 1000), tmp_path / "run.pt.trace.json"
    row = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 100, "tid": 100, "ts": 10, "dur": 5}
    path.write_text(json.dumps(whole | {"traceEvents": [*whole["traceEvents"], row]}))
    assert has_training(load(str(path))) == is_training


@pytest.mark.parametrize(("name", "is_model"), [("aten::linear", True), ("aten::fft_ifft", False), ("aten::mm", False)])
def test_programs_without_layers_are_no_models(tmp_path, name, is_model):
    """A solver was promised 4.7 times by torch.compile, measured on trainings."""
    whole = drawn("op #.#.#.#.")
    for event in whole["traceEvents"]:
        event["name"] = name
    path = tmp_path / "solver.pt.trace.json"
    path.write_text(json.dumps(whole))
    assert has_model(load(str(path))) == is_model
