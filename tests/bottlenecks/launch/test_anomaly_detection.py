"""Anomaly detection of autograd is a cause if it was recorded as on, or if each gradient is checked."""

import json

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


def test_on_a_cpu_its_checks_are_operators_of_another_regime(tmp_path):
    """Calling operators takes little of a step, and yet anomaly detection takes most of it."""
    events, row = [], {"ph": "X", "pid": 1, "tid": 1}
    for step in range(4):
        at = step * 10_000
        events.append(row | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at, "dur": 9_999})
        for number in range(98):
            name = ("aten::linear", "aten::isnan", "aten::_is_any_true")[number % 3]
            events.append(row | {"cat": "cpu_op", "name": name, "ts": at + 100 * number, "dur": 99})
    context = {"context": {"anomaly_detection": True}}
    path = tmp_path / "cpu.json"
    path.write_text(json.dumps({"deviceProperties": [], "traceEvents": events, "tb_bottleneck": context}))
    report = diagnose(str(path))
    assert report.findings[0].cause == "anomaly_detection"
    assert report.findings[0].cost_share == pytest.approx(2 / 3, rel=0.05)
    assert next(row.share for row in report.account if row.regime == "launch") < 0.1
