"""Loops that update many tensors one by one are a cause; layers, optimizers and reads are not."""

import pytest

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.bottlenecks.launch.scattered_updates import (
    idle_in_scattered_updates,
    scattered_operators,
    scattered_updates_per_step,
)
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load
from tests.bottlenecks.launch.conftest import KERNEL_US, OPERATOR_US, STEP_US

LAYERS = ["aten::add", "aten::linear", "aten::gelu"] * 8
AVERAGE = ["aten::mul_", "aten::add_"]


def recording_of(path):
    trace = load(path)
    return Recording(trace, find_steps(trace))


def test_a_moving_average_of_weights_is_a_loop_over_tensors(recorded):
    recording = recording_of(recorded([*LAYERS, *AVERAGE * 40]))
    assert scattered_updates_per_step(recording).value == 80
    assert set(scattered_operators(recording).text.split(", ")) == set(AVERAGE)
    idle = 80 * (OPERATOR_US - KERNEL_US) / STEP_US
    assert idle_in_scattered_updates(recording).value == pytest.approx(idle, rel=0.05)


def test_layers_have_no_such_loop(recorded):
    assert isinstance(scattered_updates_per_step(recording_of(recorded(LAYERS))), Missing)


@pytest.mark.parametrize(
    ("operators", "found"),
    [
        ([*LAYERS, *AVERAGE * 40], True),
        ([*LAYERS, *["aten::linalg_vector_norm", "aten::item"] * 40], True),
        ([*LAYERS, *["aten::detach", "aten::item"] * 40], False),
        (LAYERS * 4, False),
        ([*LAYERS, *AVERAGE * 10], False),
        ([*LAYERS, *["aten::mul", "aten::add", "aten::sub", "aten::div", "aten::pow"] * 16], False),
    ],
    ids=["moving average", "norms that are read", "reads", "layers", "few tensors", "a chain of other operators"],
)
def test_only_loops_over_many_tensors_are_a_cause(recorded, operators, found):
    report = diagnose(recorded(operators))
    causes = {each.cause: each for each in report.findings}
    assert ("scattered_updates" in causes) == found
    if found:
        assert causes["scattered_updates"].speedup.expected > 1.5
        assert "_foreach_" in causes["scattered_updates"].fix.code
