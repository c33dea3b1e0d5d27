"""A recording without step marks is compared with marked steps by their device operations."""

import json
from pathlib import Path

import pytest
from comparison.drawn_runs import judged, recorded, repeated

from tb_bottleneck.comparison.compare import compare_runs
from tb_bottleneck.comparison.runs.compared_run import ComparedRun, judge_run
from tb_bottleneck.comparison.runs.report_comparison import device_spans_of, on_common_basis

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
