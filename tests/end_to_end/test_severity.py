"""The severity of recordings: nothing planted is never critical, and neither is a bound of low confidence.

Read from the recordings of the demo and, if the environment variable TB_BOTTLENECK_TRACES names a folder, from its
recordings.
"""

import os
from pathlib import Path

import pytest

from demo.pairs import RECORDED
from tb_bottleneck.diagnosis.telemetry import diagnose_telemetry
from tb_bottleneck.diagnosis.trace import diagnose

FIXED = sorted(RECORDED.glob("*/fixed/**/*.pt.trace.json.gz"))
FIXED_TELEMETRY = sorted(RECORDED.glob("*/fixed/**/events.out.tfevents.*"))
PUBLIC = sorted(Path(os.environ.get("TB_BOTTLENECK_TRACES", "/nonexistent")).glob("*.json.gz"))
SIMULATED = "replay"


def name_of(path):
    return "/".join(path.parts[-4:-1])


@pytest.mark.parametrize("path", FIXED, ids=name_of)
def test_a_training_with_nothing_planted_is_not_critical(path):
    report = diagnose(str(path))
    assert report.verdict.severity in ("none", "info", "warning")


@pytest.mark.parametrize("path", FIXED_TELEMETRY, ids=name_of)
def test_telemetry_of_a_training_with_nothing_planted_is_not_critical(path):
    assert diagnose_telemetry(str(path)).verdict.severity in ("", "none", "info", "warning")


def test_both_kinds_of_recordings_are_found():
    assert len(FIXED) >= 10
    assert len(FIXED_TELEMETRY) >= 5


@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.name)
def test_a_bound_of_low_confidence_is_not_critical(path):
    report = diagnose(str(path))
    if report.verdict.confidence == "low" and report.verdict.severity == "critical":
        assert any(finding.speedup.basis == SIMULATED for finding in report.findings)
