"""Anomaly detection of autograd is a cause if it was recorded as on, or if each gradient is checked."""

import pytest

from tb_bottleneck.diagnosis.trace import diagnose

CHECK = ["aten::isnan", "aten::_is_any_true"]
LAYERS = ["aten::linear", "aten::gelu"]


@pytest.mark.parametrize(
    ("operators", "facts", "found"),
    [
        ([*LAYERS, *CHECK] * 20, {"anomaly_detection": True}, True),
        ([*LAYERS, *CHECK] * 20, {}, True),
        ([*LAYERS, *CHECK] * 20, {"anomaly_detection": False}, False),
        ([*LAYERS * 20, *CHECK], {}, False),
        (LAYERS * 40, {"anomaly_detection": True}, False),
    ],
    ids=["on", "seen", "off", "one check of the program", "on, but without a gradient"],
)
def test_what_it_costs_is_a_cause(recorded, operators, facts, found):
    report = diagnose(recorded(operators, **facts))
    causes = {each.cause: each for each in report.findings}
    assert ("anomaly_detection" in causes) == found
    if found:
        assert causes["anomaly_detection"].cost_share == pytest.approx(20 * 2 * 40 / 6_000, rel=0.1)
        assert causes["anomaly_detection"].speedup.expected > 1.2
        assert "set_detect_anomaly(False)" in causes["anomaly_detection"].fix.code
