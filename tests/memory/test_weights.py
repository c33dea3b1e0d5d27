"""Tests that the weights of each module are counted once, and that class and options give the optimizer's state."""

import os
from pathlib import Path

import pytest
from helpers.memory_recordings import RecordedAllocator

from tb_bottleneck.memory.trace_memory import trace_memory
from tb_bottleneck.memory.weights import optimizer_name, state_of, state_per_parameter, weights_read
from tb_bottleneck.trace.trace import load


def layer(allocator: RecordedAllocator, at: float, module: str, kind: str = "float") -> None:
    if module:
        allocator.span(f"nn.Module: {module}", at, at + 10, "python_function")
    args = {"Input Dims": [[4, 8], [16, 8], [16]], "Input type": [kind] * 3}
    allocator.span("aten::linear", at + 1, at + 9, **args)


@pytest.mark.parametrize(("kind", "size"), [("float", 4), ("c10::BFloat16", 2), ("what", 0)])
def test_a_module_that_runs_twice_is_counted_once(kind, size):
    allocator = RecordedAllocator()
    for at, module in ((0, "Linear_0"), (20, "Linear_1"), (40, "Linear_0"), (60, "")):
        layer(allocator, at, module, kind)
    assert weights_read(allocator.trace()) == 2 * (16 * 8 + 16) * size


def test_the_weights_of_inference_are_its_parameters():
    weights = (16 * 8 + 16) * 4
    allocator = RecordedAllocator(allocated=weights + 100, reserved=1 << 20)
    layer(allocator, 0, "Linear_0")
    allocator.alloc(5, 512)
    allocator.span("k", 2, 3, "kernel", device=0)
    parts = {category.value: size for category, size in trace_memory(allocator.trace()).account.rows}
    assert parts["parameters"] == weights
    assert parts["before_recording"] == 100


FOLDER = os.environ.get("TB_BOTTLENECK_TRACES")


@pytest.mark.skipif(not FOLDER, reason="TB_BOTTLENECK_TRACES names no folder with public traces")
@pytest.mark.parametrize("name", ["a100_moe_big_item_trap", "h100_bert_small", "h100_qwen05b", "mi300_vit_nsfw"])
def test_the_weights_of_real_models_explain_what_is_from_before_the_recording(name):
    trace = load(str(Path(FOLDER) / f"{name}.json.gz"))
    earlier = trace_memory(trace).earlier
    assert 0.9 * earlier < weights_read(trace) <= earlier


def trace_of(scope: str, operator: str = "aten::add_"):
    allocator = RecordedAllocator()
    allocator.span(scope, 0, 100, "user_annotation")
    allocator.span(operator, 10, 20)
    return allocator.trace()


@pytest.mark.parametrize(
    ("name", "operator", "state"),
    [("SGD", "aten::add_", 0), ("SGD", "aten::mul_", 1), ("AdamW", "aten::lerp_", 2), ("Adam", "aten::maximum", 3)],
)
def test_the_state_follows_class_and_operators(name, operator, state):
    assert state_per_parameter(trace_of(f"Optimizer.step#{name}.step", operator)) == state


def test_an_unknown_class_has_no_known_state():
    assert state_per_parameter(trace_of("Optimizer.step#Shampoo.step")) is None
    assert state_of("Shampoo") is None
    assert optimizer_name(trace_of("aten::mm")) is None


def test_sgd_usually_has_momentum():
    assert state_of("sgd") == 1
