"""The predictions of the replay in the report: gains, plan, and the reason if there is none."""

import json
import re

import pytest
from helpers.draw import drawn

from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.report.builders.gains import why_not_simulated
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.text.report import render

WAITING = """
    step    aaaaaaaaaabbbbbbbbbb
    loader  ######....######....
    launch  ......|.........|...
    gpu     .......###.......###
"""
# The loader is slow, and for half of the time launched kernels begin late for an unknown reason.
UNEXPLAINED = """
    step    aaaaaaaaaaaabbbbbbbbbbbb
    loader  ####........####........
    launch  ....||..........||......
    gpu     .....#....#......#....#.
"""


@pytest.fixture
def report(tmp_path):
    def diagnosed(drawing: str, **header: object) -> pb.Report:
        path = tmp_path / "drawn.pt.trace.json"
        trace = drawn(drawing, 1000.0, **header)
        # Enough kernels for a verdict: each drawn one counts four times, one after the other.
        events = []
        for event in trace["traceEvents"]:
            copies = 4 if event["cat"] in ("kernel", "cuda_runtime") else 1
            for copy in range(copies):
                part = {**event, "dur": event["dur"] / copies, "ts": event["ts"] + copy * event["dur"] / copies}
                if copies > 1:
                    part["args"] = {**event["args"], "correlation": event["args"]["correlation"] * 10 + copy}
                events.append(part)
        path.write_text(json.dumps({**trace, "traceEvents": events}))
        return diagnose(str(path))

    return diagnosed


def test_a_simulated_gain_takes_the_place_of_the_bound(report):
    found = report(WAITING)
    speedup = found.findings[0].speedup
    assert found.findings[0].cause == "loader_in_main_process"
    assert speedup.basis == "replay"
    assert speedup.low <= speedup.expected <= speedup.high
    assert speedup.assumes.startswith("workers create batches")


def test_the_plan_repeats_the_gain_of_its_first_fix(report):
    found = report(WAITING)
    step = found.plan[0]
    assert step.cause == found.findings[0].cause
    assert step.speedup_total == pytest.approx(found.findings[0].speedup.expected)
    mean = (found.window.end_ns - found.window.begin_ns) / found.window.steps
    assert step.step_ns_after == pytest.approx(mean / step.speedup_total)


def test_the_check_of_the_replay_is_reported(report):
    found = report(WAITING)
    assert found.HasField("replay")
    assert found.replay.error < 0.01
    assert found.replay.because == ""
    assert "of its recorded time" in found.replay.host


def test_a_gain_that_was_not_simulated_says_why(report):
    assert why_not_simulated("oversubscribed_threads", on_cpu=True).startswith(
        "Not simulated: a recording with too many threads"
    )
    assert "healthy link" in why_not_simulated("degraded_link", on_cpu=False)
    assert "on the CPU" in why_not_simulated("small_kernels", on_cpu=True)
    assert report(WAITING).findings[0].speedup.because == ""


def test_a_measured_unprofiled_step_is_reported(report):
    """The host dispatches all the time, or it waits for the loader, so that its own speed does not show."""
    dispatching = """
        step    aaaaaaaaaabbbbbbbbbb
        op      aaaaaaaaaabbbbbbbbbb
        launch  ..|..|..|...|..|..|.
        gpu     ..#..#..#...#..#..#.
    """
    context = {"context": {"unprofiled_step_ns": 9_900_000}}
    assert "measured unprofiled step time" in report(dispatching, tb_bottleneck=context).replay.host
    assert "does not show how much" in report(WAITING, tb_bottleneck=context).replay.host


def test_an_unexplained_recording_says_why_nothing_is_predicted(report):
    found = report(UNEXPLAINED)
    assert found.replay.frozen_share > 0.1
    assert found.replay.because.startswith("Nothing is predicted")
    assert not found.plan
    assert {finding.speedup.basis for finding in found.findings} <= {"bound", "none"}


def test_a_replay_that_breaks_costs_the_report_nothing_else(report, monkeypatch, caplog):
    def fails(*_):
        raise IndexError("planted")

    monkeypatch.setattr("tb_bottleneck.diagnosis.trace.predict", fails)
    found = report(WAITING)
    assert found.verdict.regime == "input"
    assert "an error in tb_bottleneck" in found.replay.because
    assert found.findings[0].speedup.basis == "bound"
    assert "planted" in caplog.text


def test_the_text_shows_the_plan_with_its_bounds_and_assumptions(report):
    text = render(report(WAITING))
    assert "What to change first" in text
    assert re.search(r"  1\. +[\d.]+x +\(\S+ to \S+\) +\S+ .s  Let worker processes create the batches", text)
    assert "this assumes that workers create batches as fast as now" in " ".join(text.split())
    assert "without any change, the simulated time differs by" in " ".join(text.split())


def test_the_text_says_why_there_is_no_plan(report):
    text = render(report(UNEXPLAINED))
    assert "What to change first" not in text
    assert "Nothing is predicted" in text
