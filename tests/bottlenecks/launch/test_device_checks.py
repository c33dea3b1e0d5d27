"""Conditions on values of the device are checks, together with the operators that compute them."""

import pytest

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.bottlenecks.launch.device_checks import checks_per_step, idle_in_checks
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load
from tests.bottlenecks.launch.conftest import KERNEL_US, OPERATOR_US, STEP_US

LAYER = ["aten::linear", "aten::gelu", "aten::add"]
CHECK = ["aten::isnan", "aten::any", "aten::is_nonzero"]


def test_a_check_has_the_operators_that_compute_its_condition(recorded):
    trace = load(recorded([*LAYER, *CHECK] * 8))
    recording = Recording(trace, find_steps(trace))
    assert checks_per_step(recording).value == 8
    checked = 8 * len(CHECK) * (OPERATOR_US - KERNEL_US) - 8 * 10
    assert idle_in_checks(recording).value == pytest.approx(checked / STEP_US, rel=0.05)


@pytest.mark.parametrize(
    ("operators", "found"),
    [
        ([*LAYER, *CHECK] * 8, True),
        ([*LAYER, "aten::abs", "aten::max", "aten::gt", "aten::is_nonzero"] * 8, True),
        ([*LAYER, "aten::isfinite", "aten::all", "aten::logical_not", "aten::is_nonzero"] * 8, True),
        ([*LAYER * 20, *CHECK], False),
        ([*LAYER, "aten::item"] * 8, False),
        (LAYER * 20, False),
    ],
    ids=["in each layer", "limits", "finite values", "once in a step", "values that are read", "no check"],
)
def test_several_checks_in_a_step_are_a_cause(recorded, operators, found):
    report = diagnose(recorded(operators))
    causes = {each.cause: each for each in report.findings}
    assert ("device_checks" in causes) == found
    if found:
        assert causes["device_checks"].speedup.expected > 1.2
        assert "torch._assert_async" in causes["device_checks"].fix.code
