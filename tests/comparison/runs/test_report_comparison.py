"""Tests comparisons on the basis of device operations, and with a baseline that has only a report.

Of such a baseline, times, regimes and causes are compared, and nothing else.
"""

import json
from pathlib import Path

import pytest
from comparison.drawn_runs import H200, judged, recorded, repeated

from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.comparison.compare import compare_runs
from tb_bottleneck.comparison.runs.compared_run import ComparedRun, JudgedRun, UnjudgedRun, judge_run
from tb_bottleneck.comparison.runs.runs_from_reports import device_spans_of, on_common_basis, run_from_reports
from tb_bottleneck.comparison.series.run_series import series_of
from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if
from tb_bottleneck.report.json_form import as_dict

CALLS = 16
ROWS = {
    "op": "##" + "#." * CALLS + "......",
    "launch": ".." + "|." * CALLS + "......",
    "gpu": "...." + "#." * (CALLS - 1) + "#####.",
}
STEP_NS = 40e6  # host work before the first device operation, and a column after the last one, included
DEVICE_NS = 35e6


def marked(tmp_path, steps=1):
    return judged(tmp_path, repeated(steps, **ROWS), unit_us=1000)


def unmarked(tmp_path):
    """The same iteration as `marked`, without the annotation of its step."""
    path = Path(recorded(tmp_path, repeated(1, **ROWS), unit_us=1000))
    trace = json.loads(path.read_text())
    trace["traceEvents"] = [event for event in trace["traceEvents"] if "ProfilerStep" not in event["name"]]
    path.write_text(json.dumps(trace))
    run = judge_run("unmarked", [str(path)])
    assert isinstance(run, ComparedRun), run
    assert run.recording.steps.basis == "whole"
    return run


@pytest.mark.parametrize("steps", [1, 4])
def test_the_same_iteration_takes_the_same_time_with_and_without_a_mark(tmp_path, steps):
    """The mark adds four columns of host work before the first kernel and one after the last: 40 instead of 35."""
    plain, annotated = unmarked(tmp_path), marked(tmp_path, steps)
    assert annotated.step_ns == pytest.approx(STEP_NS)
    for told in (compare_runs(plain, annotated), compare_runs(annotated, plain)):
        assert told.a_ns == pytest.approx(DEVICE_NS)
        assert told.b_ns == pytest.approx(DEVICE_NS)
        assert sum(bar.b_ns for bar in told.by_regime) == pytest.approx(told.b_ns)
        assert all(bar.delta_ns == pytest.approx(0, abs=1) for bar in told.by_regime)
        assert any("has no step marks, so its time is from the first device" in note for note in told.notes)


def test_two_runs_with_marks_are_compared_by_their_marks(tmp_path):
    a, b = marked(tmp_path), marked(tmp_path)
    assert on_common_basis(a, b) == (a, b, None)
    told = compare_runs(a, b)
    assert told.a_ns == pytest.approx(STEP_NS)
    assert not any("step marks, so" in note for note in told.notes)


def test_a_step_that_launches_nothing_has_no_device_span(tmp_path):
    """Without the device operations of one step, the times are compared as they are, and the note says so."""
    idle = {name: "." * len(row) for name, row in ROWS.items()} | {"op": ROWS["op"]}
    drawing = "\n".join(
        f"{before}{empty.partition(' ')[2].replace('a', 'z')}{after.partition(' ')[2].replace('a', 'y')}"
        for before, empty, after in zip(
            repeated(3, **ROWS).splitlines(),
            repeated(1, **idle).splitlines(),
            repeated(1, **ROWS).splitlines(),
            strict=True,
        )
    )
    run = judged(tmp_path, drawing, unit_us=1000)
    assert device_spans_of(run.recording) is None
    told = compare_runs(unmarked(tmp_path), run)
    assert any("These times do not mean the same" in note for note in told.notes)
    assert told.b_ns == pytest.approx(STEP_NS)


SLOW = repeated(9, loader="######....", gpu="......####")
FAST = repeated(9, workers="#.....", gpu="..####")


def kept(run, **changes):
    """Returns the run's report as `diagnose --json` prints it."""
    return json.dumps({"reports": [as_dict(report) | changes for report in run.reports]}).encode()


def test_a_report_compares_as_its_recording_does(tmp_path):
    slow, fast = judged(tmp_path, SLOW), judged(tmp_path, FAST)
    base = run_from_reports("base.reports.json", kept(slow))
    assert isinstance(base, JudgedRun)
    assert not isinstance(base, ComparedRun)
    result, whole = compare_runs(base, fast), compare_runs(slow, fast)
    assert result.speedup == pytest.approx(whole.speedup)
    assert result.significant
    assert [bar.delta_ns for bar in result.by_regime] == pytest.approx([bar.delta_ns for bar in whole.by_regime])
    assert list(result.causes.lost) == list(whole.causes.lost)
    assert "At least one run has no trace here" in result.notes[0]


def test_a_disturbed_step_of_a_report_does_not_decide(tmp_path):
    """The last step of the baseline idles for 32 columns; only its report is known."""
    disturbed = "\n".join(
        line + ("i" if line.startswith("step") else ".") * 32
        for line in repeated(9, workers="#.....", gpu="..####").splitlines()
    )
    base = run_from_reports("base", kept(judged(tmp_path, disturbed)))
    told = compare_runs(base, judged(tmp_path, FAST))
    assert told.a_ns == pytest.approx(told.b_ns)
    assert told.difference == "none"
    assert sum(bar.a_ns for bar in told.by_regime) == pytest.approx(told.a_ns)


def test_no_expected_time_and_no_context_from_a_report(tmp_path):
    result = compare_runs(run_from_reports("base", kept(judged(tmp_path, SLOW))), judged(tmp_path, FAST, device=H200))
    assert not result.HasField("expected")
    assert not result.context


def test_the_report_file_next_to_a_trace_is_a_report_too(tmp_path):
    (report,) = json.loads(kept(judged(tmp_path, SLOW)))["reports"]
    assert isinstance(run_from_reports("base", json.dumps({"made_by": "0.1.0", "report": report}).encode()), JudgedRun)


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"reports": 5}', b'{"reports": [5]}', b'{"reports": [{"schema": "x"}]}', b"[" * 9999]
)
def test_what_holds_no_report_says_what_would(text):
    found = run_from_reports("base", text)
    assert isinstance(found, UnjudgedRun)
    assert "contains no report" in found.because[0]


def test_a_report_from_before_a_regime_existed_has_no_time_in_it(tmp_path):
    (report,) = json.loads(kept(judged(tmp_path, SLOW)))["reports"]
    account = report["account"]
    without_time = next(row for row in account if row["share"] == 0)
    with_time = next(row for row in account if row["share"] > 0)
    report["account"] = [row for row in account if row is not without_time]
    found = run_from_reports("base", json.dumps({"report": report}).encode())
    assert isinstance(found, JudgedRun)
    assert [row.regime for row in found.reports[0].account] == list(REGIMES)
    report["account"] = [row for row in account if row is not with_time]
    assert isinstance(run_from_reports("base", json.dumps({"report": report}).encode()), UnjudgedRun)


@pytest.mark.parametrize("broken", [{"account": []}, {"verdict": None}, {"window": {"step_times_ns": ["Infinity"]}}])
def test_a_report_that_is_not_whole_is_none(tmp_path, broken):
    found = run_from_reports("base", kept(judged(tmp_path, SLOW), **broken))
    assert isinstance(found, UnjudgedRun)
    assert "no report with a verdict" in found.because[0]


def test_nothing_is_predicted_or_swept_from_a_report(tmp_path):
    base = run_from_reports("base", kept(judged(tmp_path, SLOW)))
    assert "no recording to replay" in what_if(base, WhatIfOptions(device="NVIDIA H200")).headline
    result = series_of([base, judged(tmp_path, FAST), judged(tmp_path, FAST)])
    assert "is left out" in result.notes[0]


def telemetry_report(run, scale=0.7):
    """Returns the run's report as its monitor would write it: shorter without a profiler, and mostly unexplained."""
    (report,) = json.loads(kept(run))["reports"]
    whole = sum(row["ns_per_step"] for row in report["account"]) * scale
    account = [row | {"ns_per_step": whole * (row["regime"] == "unexplained")} for row in report["account"]]
    return report | {"evidence_source": "telemetry", "account": account}


def test_where_a_trace_was_judged_its_telemetry_is_not_compared_in_its_place(tmp_path):
    """`diagnose --json` of a monitored run prints both, the telemetry last: "all of that is unexplained"."""
    slow, fast = judged(tmp_path, SLOW), judged(tmp_path, FAST)
    both = [as_dict(slow.report), telemetry_report(slow)]
    base = run_from_reports("base.reports.json", json.dumps({"reports": both}).encode())
    assert compare_runs(base, fast).speedup == pytest.approx(compare_runs(slow, fast).speedup)
    assert [report.evidence_source for report in base.telemetry_reports] == ["telemetry"]


def test_telemetry_is_not_held_against_a_trace(tmp_path):
    slow, fast = judged(tmp_path, SLOW), judged(tmp_path, FAST)
    alone = json.dumps({"reports": [telemetry_report(slow)]}).encode()
    result = compare_runs(run_from_reports("base", alone), fast)
    assert not result.comparable
    assert "A was judged from telemetry and B from a trace" in result.headline
    assert compare_runs(run_from_reports("base", alone), run_from_reports("other", alone)).comparable


def timed(report, mean_ns, steps=500):
    """Returns a report of telemetry with this mean step, whose longest steps take ten times as long."""
    window = report["window"] | {"steps": steps, "mean_error": 0.01, "step_times_ns": [10 * mean_ns] * 50}
    window["step_ns"] = report["window"]["step_ns"] | {"mean": mean_ns, "median": mean_ns / 2}
    scale = mean_ns / sum(row["ns_per_step"] for row in report["account"])
    account = [row | {"ns_per_step": row["ns_per_step"] * scale} for row in report["account"]]
    return report | {"window": window, "account": account}


def test_telemetry_is_compared_by_the_mean_steps_of_the_runs(tmp_path):
    """Not by the longest of neighbouring steps, which a report keeps."""
    report = telemetry_report(judged(tmp_path, SLOW))
    a, b = (run_from_reports(str(mean), json.dumps({"reports": [timed(report, mean)]}).encode()) for mean in (6e6, 2e6))
    result = compare_runs(a, b)
    assert "B is 3.00 times as fast as A" in result.headline
    assert (result.difference, result.a_steps) == ("faster", 500)
    assert (result.a_ns, result.b_ns) == pytest.approx((6e6, 2e6), rel=1e-3)
    assert not any("left out" in note for note in result.notes)


def test_a_run_with_a_trace_is_compared_by_its_telemetry_with_one_that_has_none(tmp_path):
    slow, fast = judged(tmp_path, SLOW), judged(tmp_path, FAST)
    of_slow, of_fast = timed(telemetry_report(slow), 6e6), timed(telemetry_report(fast), 2e6)
    alone = run_from_reports("alone", json.dumps({"reports": [of_slow]}).encode())
    both = run_from_reports("both", json.dumps({"reports": [as_dict(fast.report), of_fast]}).encode())
    for runs, said in (
        ((alone, both), "B is 3.00 times as fast as A"),
        ((both, alone), "A is 3.00 times as fast as B"),
    ):
        result = compare_runs(*runs)
        assert result.comparable
        assert said in result.headline
        assert any("is compared by its telemetry, too" in note for note in result.notes)


def test_reports_of_several_runs_are_not_taken_for_one(tmp_path):
    slow = as_dict(judged(tmp_path, SLOW).report)
    found = run_from_reports("base", json.dumps({"reports": [slow | {"run": run} for run in ("w0", "w2")]}).encode())
    assert isinstance(found, UnjudgedRun)
    assert "contains reports of 2 runs (w0, w2)" in found.because[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"window": {"steps": 3, "step_times_ns": [0, 0, 0]}},
        {"window": {"steps": 3, "step_times_ns": [5e6, 5e6, 1e-300]}},
        {"unprofiled": {"step_ns": 0}},
        {"unprofiled": {"step_ns": 5e6, "step_times_ns": [0, 0]}},
    ],
    ids=["no time", "almost no time", "no unprofiled time", "no unprofiled times"],
)
def test_steps_that_take_no_time_are_not_compared(tmp_path, changes):
    """The ratio of such times is a division by zero."""
    found = run_from_reports("base", kept(judged(tmp_path, SLOW), **changes))
    assert isinstance(found, UnjudgedRun)
    assert not compare_runs(judged(tmp_path, FAST), found).comparable
