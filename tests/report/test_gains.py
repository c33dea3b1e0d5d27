"""What the replay predicts, as the report tells it: gains, plan, and why there is none."""

import json

import pytest
from draw import drawn

from tb_bottleneck.diagnosis import diagnose
from tb_bottleneck.report.text import render
from tb_bottleneck.schema import bottleneck_pb2 as pb

STARVED = """
    step    aaaaaaaaaabbbbbbbbbb
    loader  ######....######....
    launch  ......|.........|...
    gpu     .......###.......###
"""
# The loader is slow, and half of the time nothing tells why kernels that had been launched did not begin.
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
        # Kernels enough to judge: each drawn one counts four times, one after the other.
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
    found = report(STARVED)
    speedup = found.findings[0].speedup
    assert found.findings[0].cause == "loader_in_main_process"
    assert speedup.basis == "replay"
    assert speedup.low <= speedup.expected <= speedup.high
    assert speedup.assumes.startswith("workers make batches")


def test_the_plan_repeats_the_gain_of_its_first_cure(report):
    found = report(STARVED)
    step = found.plan[0]
    assert step.cause == found.findings[0].cause
    assert step.speedup_total == pytest.approx(found.findings[0].speedup.expected)
    mean = (found.window.end_ns - found.window.begin_ns) / found.window.steps
    assert step.step_ns_after == pytest.approx(mean / step.speedup_total)


def test_the_check_of_the_replay_is_reported(report):
    found = report(STARVED)
    assert found.HasField("replay")
    assert found.replay.error < 0.01
    assert found.replay.because == ""
    assert "of its recorded time" in found.replay.host


def test_a_measured_unprofiled_step_is_told(report):
    context = {"context": {"unprofiled_step_ns": 9_900_000}}
    assert "measured unprofiled step time" in report(STARVED, tb_bottleneck=context).replay.host


def test_an_unexplained_recording_says_why_nothing_is_predicted(report):
    found = report(UNEXPLAINED)
    assert found.replay.frozen_share > 0.1
    assert found.replay.because.startswith("Nothing is predicted")
    assert not found.plan
    assert {finding.speedup.basis for finding in found.findings} <= {"bound", "none"}


def test_a_replay_that_breaks_costs_the_report_nothing_else(report, monkeypatch, caplog):
    def fails(*_):
        raise IndexError("planted")

    monkeypatch.setattr("tb_bottleneck.diagnosis.predict", fails)
    found = report(STARVED)
    assert found.verdict.regime == "input"
    assert "our fault" in found.replay.because
    assert found.findings[0].speedup.basis == "bound"
    assert "planted" in caplog.text


def test_the_text_shows_the_plan_with_its_bounds_and_assumptions(report):
    text = render(report(STARVED))
    assert "What to change first" in text
    assert "1. Let worker processes make the batches" in text
    assert "this assumes that workers make batches as fast as now" in " ".join(text.split())
    assert "The unmodified recording, replayed" in text


def test_the_text_says_why_there_is_no_plan(report):
    text = render(report(UNEXPLAINED))
    assert "What to change first" not in text
    assert "Nothing is predicted" in text
