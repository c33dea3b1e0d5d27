"""An evaluation during a training interrupts it; in a recording that contains nothing else, it is no interruption."""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.attribution.training_detection import has_model, has_training
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.trace.trace import load

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
