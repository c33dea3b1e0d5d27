"""The severity of recordings: it follows the gains that the report states, and says no more than they do.

Read from the recordings of the demo and, if the environment variable TB_BOTTLENECK_TRACES names a folder, from its
recordings.
"""

import os
from pathlib import Path

import pytest
from helpers.reports import report_of

from demo.index import read_index
from demo.pairs import RECORDED
from tb_bottleneck.base.regime import DEVICE_REGIMES, Regime
from tb_bottleneck.text.report import render

TRACES = sorted(RECORDED.glob("**/*.pt.trace.json.gz"))
TELEMETRY = sorted(RECORDED.glob("**/events.out.tfevents.*"))
PUBLIC = sorted(Path(os.environ.get("TB_BOTTLENECK_TRACES", "/nonexistent")).glob("*.json.gz"))
SAVED = {"critical": 0.20, "warning": 0.10}
ONCE = ("start_up", "first_batch")


def name_of(path):
    return path.name if path in PUBLIC else "/".join(path.parts[-4:-1])


every_recording = pytest.mark.parametrize("path", [*TRACES, *TELEMETRY, *PUBLIC], ids=name_of)


def saved(factor):
    return 1 - 1 / max(factor, 1.0)


def test_all_kinds_of_recordings_and_severities_are_found():
    """Otherwise no test here could fail."""
    found = {report_of(path).verdict.severity for path in [*TRACES, *TELEMETRY]}
    assert found == {"critical", "warning", "info", "none"}
    bases = {finding.speedup.basis for path in TRACES for finding in report_of(path).findings}
    assert bases == {"replay", "bound", "estimate", "none"}
    assert len(TRACES) >= 20
    assert len(TELEMETRY) >= 20


def on_cpu(path):
    """On a fast GPU, the small models of fixed pairs are limited by launches."""
    pair = read_index(RECORDED)["pairs"].get(path.relative_to(RECORDED).parts[0], {})
    return pair.get("fixed", {}).get("device_kind", "cpu") == "cpu"


FIXED = [path for path in [*TRACES, *TELEMETRY] if "fixed" in path.parts and on_cpu(path)]


@pytest.mark.parametrize("path", FIXED, ids=name_of)
def test_a_training_with_nothing_planted_is_not_critical(path):
    assert report_of(path).verdict.severity in ("none", "info", "warning")


@every_recording
def test_a_severity_that_promises_saved_time_rests_on_a_stated_gain_of_that_size(path):
    report = report_of(path)
    promised = SAVED.get(report.verdict.severity, 0.0)
    if promised and report.verdict.regime != Regime.GPU_UNUSED:
        stated = [saved(step.speedup_total) for step in report.plan]
        for finding in report.findings:
            if finding.cause not in ONCE:
                gain = finding.speedup
                stated.append(saved(gain.high if gain.basis == "bound" else gain.expected))
        assert max(stated, default=0.0) >= promised


@every_recording
def test_nothing_of_low_confidence_is_critical(path):
    verdict = report_of(path).verdict
    assert (verdict.confidence, verdict.severity) != ("low", "critical")


@every_recording
def test_a_start_up_has_no_gain_and_makes_no_severity(path):
    report = report_of(path)
    for finding in report.findings:
        if finding.cause in ONCE:
            assert finding.speedup.basis == "none"
            assert finding.cause not in [step.cause for step in report.plan]
    if report.findings and all(finding.cause in ONCE for finding in report.findings):
        assert report.verdict.severity in ("none", "info")


@every_recording
def test_the_text_promises_time_only_with_a_gain_and_calls_no_run_good_that_has_one(path):
    report, text = report_of(path), " ".join(render(report_of(path)).split())
    if "of the time or more can be saved" in text:
        assert report.verdict.severity in SAVED
        gains = [*report.plan, *(one.speedup for one in report.findings if one.speedup.basis == "replay")]
        assert gains
    if "by all changes together" in text:
        assert (
            saved(report.plan[-1].speedup_total) >= SAVED[report.verdict.severity] > saved(report.plan[0].speedup_total)
        )
    if report.verdict.severity == "none" and report.verdict.regime in DEVICE_REGIMES:
        certain = [one for one in report.findings if one.speedup.basis == "replay"]
        assert all(saved(one.speedup.expected) < SAVED["critical"] for one in certain)
