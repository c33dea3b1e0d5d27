"""No two figures of a report contradict each other: all refer to one mean step, one number of workers and one device.

Read from the recordings of the demo and, if the environment variables TB_BOTTLENECK_TRACES and TB_BOTTLENECK_GPU name
folders, from their recordings.
"""

import os
import re
from functools import cache
from pathlib import Path

import pytest
from helpers.reports import report_of

from demo.pairs import RECORDED
from tb_bottleneck.base.units import duration_text
from tb_bottleneck.report.digest import Digest, shown_ns, step_ns_of
from tb_bottleneck.text.report import render
from tb_bottleneck.text.summary import summary

PUBLIC = Path(os.environ.get("TB_BOTTLENECK_TRACES", "/nonexistent"))
GPU = Path(os.environ.get("TB_BOTTLENECK_GPU", "/nonexistent"))
OWN = "*.pt.trace.json.gz"
TRACES = sorted([*RECORDED.rglob(OWN), *GPU.rglob(OWN), *PUBLIC.glob("*.json.gz")])
TELEMETRY = sorted(path for folder in (RECORDED, GPU) for path in folder.rglob("events.out.tfevents.*"))


@cache
def reports():
    """Returns the reports that have a verdict."""
    found = [report_of(path) for path in TRACES]
    return [report for report in found if report.HasField("verdict")]


@cache
def texts():
    """Returns all reports, those of telemetry too, with their short and full texts in one line."""
    found = [report_of(path) for path in [*TRACES, *TELEMETRY]]
    return [(report, " ".join(f"{summary(report)} {render(report)}".split())) for report in found]


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


def test_the_times_of_the_account_and_of_the_plan_add_up_to_the_step_that_is_stated():
    for report, _ in texts():
        if report.HasField("unprofiled"):
            step = step_ns_of(report)
            assert sum(shown_ns(report, row.ns_per_step) for row in report.account) == pytest.approx(step)
            for change in report.plan:
                assert shown_ns(report, change.step_ns_after) == pytest.approx(step / change.speedup_total)


def test_one_step_time_without_the_profiler_is_stated():
    stated = [set(re.findall(r"([\d.,]+ [nµm]?s)(?: per step)? without the profiler", text)) for _, text in texts()]
    assert any(stated)
    for (report, _), times in zip(texts(), stated, strict=True):
        assert len(times) <= 1, (report.source, times)


def test_code_command_and_evidence_name_one_number_of_workers():
    named = 0
    for report, _ in texts():
        for finding in report.findings:
            advice = f"{finding.fix.action} {finding.fix.code} {finding.fix.command}"
            numbers = set(re.findall(r"workers=(\d+)", advice))
            named += len(numbers)
            assert len(numbers) <= 1, (report.source, numbers)
            for row in finding.evidence:
                if "keep up" in row.label:
                    assert round(row.value) == report.input.workers_needed, report.source
    assert named


def test_the_device_of_the_recording_is_the_one_in_the_code():
    for report, _ in texts():
        if report.device.kind == "cpu":
            assert not [finding.cause for finding in report.findings if '"cuda"' in finding.fix.code], report.source


def test_no_regime_is_clear_that_takes_a_tenth_of_the_time():
    clear = 0
    for report, text in texts():
        named = re.search(r" - Clear: ([^.]*)", text)
        shares = {row.title: row.share for row in report.account}
        for title in named.group(1).split(", ") if named else ():
            clear += 1
            assert shares.get(title, 0.0) < 0.1, (report.source, title)
    assert clear


def test_an_overhead_of_the_profiler_is_stated_only_if_there_is_one():
    for report, text in texts():
        assert not re.search(r"rofiler overhead[^.]{0,30}: (0|less than)", text), report.source
