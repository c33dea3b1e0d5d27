"""Without recorded host activity idle time has no owner: it is not attributed to Python."""

import json

import pytest
from helpers.draw import drawn

from tb_bottleneck.diagnosis.trace import diagnose

WAITING = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    loader  #####.....#####.....#####.....
    op      .....##........##........##...
    launch  .....||........||........||...
    gpu     ......aabb......ccdd......eeff
"""
BUSY = """
    gpu     .aaaaabbbbb.ccccddddd.eeeeffff
"""


def recorded(tmp_path, drawing, without=(), kernel=None):
    whole = drawn(drawing, 1000)
    events = []
    for event in whole["traceEvents"]:
        if event["cat"] in without:
            continue
        if event["cat"] == "kernel" and kernel:
            event["name"] = kernel
        parts = 2 if event["cat"] in ("kernel", "cuda_runtime") else 1
        for n in range(parts):
            part = {**event, "dur": event["dur"] / parts, "ts": event["ts"] + n * event["dur"] / parts}
            if parts > 1:
                part["args"] = {**event["args"], "correlation": event["args"]["correlation"] * 10 + n}
            events.append(part)
    path = tmp_path / "seen.pt.trace.json"
    path.write_text(json.dumps({**whole, "traceEvents": events}))
    return diagnose(str(path))


HOST = ("cpu_op", "user_annotation", "python_function")


def test_with_host_rows_the_recording_shows_why_the_device_waits(tmp_path):
    assert recorded(tmp_path, WAITING).verdict.regime == "input"


@pytest.mark.parametrize("without", [HOST, (*HOST, "cuda_runtime")])
def test_without_them_it_gets_no_verdict(tmp_path, without):
    report = recorded(tmp_path, WAITING, without)
    assert (report.health.status, report.health.reasons[0].code) == ("incomplete", "host_not_recorded")
    assert "ProfilerActivity.CPU" in report.health.reasons[0].fix
    assert not report.HasField("verdict")
    assert {row.regime: row.share for row in report.account}["host"] == 0, "no Python was recorded"


def test_a_busy_device_needs_no_host_to_be_judged(tmp_path):
    report = recorded(tmp_path, BUSY, HOST)
    assert report.verdict.regime == "compute"
    unseen = recorded(tmp_path, BUSY, (*HOST, "cuda_runtime"))
    shares = {row.regime: row.share for row in unseen.account}
    assert unseen.verdict.regime == "compute"
    assert shares["host"] == 0, "no Python was recorded"
    assert shares["unexplained"] == pytest.approx(2 / 29, abs=0.001)


def test_without_runtime_rows_operators_replace_launches_and_waits_are_not_judged(tmp_path):
    """
    The operators run for 10 ms and kernels for a tenth of that; the backward pass has its own thread.
    """
    drawing = """
        step    aaaaaaaaaabbbbbbbbbbcccccccccc
        op      ##########.########..#########
        gpu     .a..b..c..d.e..f..g..h.i..j...
    """
    report = recorded(tmp_path, drawing, ("cuda_runtime",))
    assert report.verdict.regime == "launch"
    assert "calls_not_recorded" in [reason.code for reason in report.health.reasons]
    status = {regime.regime: regime.status for regime in report.regimes}
    assert (status["sync"], status["allocator"]) == ("abstains", "abstains")


def test_a_little_unknown_time_withholds_no_fix_of_the_devices_work(tmp_path):
    """The device is idle for 5 of 30 columns, and nothing shows why; the products do not depend on it."""
    drawing = """
        gpu     .aaaaaaaabbb....bbbbcccccddddd
    """
    report = recorded(tmp_path, drawing, HOST, "ampere_sgemm_128x64_tn")
    assert report.health.status == "degraded"
    assert report.health.reasons[0].code == "host_not_recorded"
    assert report.verdict.regime == "compute"
    assert "fp32_matmul" in [finding.cause for finding in report.findings]
    assert {regime.regime: regime.status for regime in report.regimes}["host"] == "abstains"
