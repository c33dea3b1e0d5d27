"""Today's step, the account, the lost shares and the gains of a report all refer to the same mean step.

Read from the recordings of the demo and, if the environment variable TB_BOTTLENECK_TRACES names a folder, from its
recordings.
"""

import os
from functools import cache
from pathlib import Path

import pytest
from helpers.reports import report_of

from demo.pairs import RECORDED
from tb_bottleneck.base.units import duration_text
from tb_bottleneck.report.digest import Digest
from tb_bottleneck.text.report import render

FOLDER = Path(os.environ.get("TB_BOTTLENECK_TRACES", "/nonexistent"))
TRACES = sorted([*RECORDED.rglob("*.pt.trace.json.gz"), *FOLDER.glob("*.json.gz")])


@cache
def reports():
    """Returns the reports that have a verdict."""
    found = [report_of(path) for path in TRACES]
    return [report for report in found if report.HasField("verdict")]


@pytest.mark.nightly
def test_some_steps_have_a_mean_that_is_far_from_the_median():
    """Otherwise no test here could tell the two apart."""
    far = [r for r in reports() if abs(r.window.step_ns.mean / r.window.step_ns.median - 1) > 0.1]
    assert len(far) >= 3
    assert any(report.plan for report in reports())


def test_todays_step_over_the_step_after_a_fix_is_the_promised_speedup():
    for report in reports():
        for step in report.plan:
            assert report.window.step_ns.mean / step.step_ns_after == pytest.approx(step.speedup_total), report.source


def test_the_account_adds_up_to_todays_step():
    for report in reports():
        today = report.window.step_ns.mean
        assert sum(row.ns_per_step for row in report.account) == pytest.approx(today), report.source
        for row in report.account:
            assert row.ns_per_step == pytest.approx(row.share * today, abs=1), report.source


def test_a_finding_loses_its_share_of_todays_step():
    """A bound promises exactly the share; a simulated gain leaves a step that is shorter by what it promises."""
    for report in reports():
        today = report.window.step_ns.mean
        for finding in report.findings:
            if finding.speedup.basis == "bound":
                after = today * (1 - finding.cost_share)
                assert today / after >= finding.speedup.expected * (1 - 1e-9), report.source


def test_the_text_and_the_list_of_runs_state_the_same_step():
    for report in reports():
        listed = Digest.of(report).step_ns
        if report.HasField("unprofiled"):
            assert f"Step: {duration_text(listed)} without the profiler" in render(report), report.source
        else:
            assert listed == report.window.step_ns.mean
        if report.window.basis != "whole":
            stated = "corrected to" if report.window.HasField("recorded_step_ns") else "of"
            assert f" {stated} {duration_text(report.window.step_ns.mean)}" in render(report), report.source
