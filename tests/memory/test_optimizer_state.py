"""The state of an optimizer is known by its class and options."""

import pytest
from helpers.memory_recordings import RecordedAllocator

from tb_bottleneck.memory.weights import optimizer_name, state_of, state_per_parameter


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
