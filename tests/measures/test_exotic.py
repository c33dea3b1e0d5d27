"""The account in odd shapes of recordings: it sums to the window, counts no instant twice, and nothing breaks."""

import json
import random

import pytest
from helpers.draw import drawn, drawn_trace
from simulate.kineto import DIALECTS, Recording, kineto_json
from simulate.machine import Machine
from simulate.training import program_of
from simulate.workload import random_workload

from tb_bottleneck.attribution import trace_recording as measures
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.trace.steps import find_steps

KERNELS = """
    step    aaaaaaaaaabbbbbbbbbbcccccccccc
    op      ##........##........##........
    gpu     ..aabbcc....aabbcc....aabbcc..
"""


def account(trace):
    return measures.Recording(trace, find_steps(trace)).account


def test_kernels_of_one_stream_that_overlap_are_counted_once(tmp_path):
    """Programmatic dependent launch lets a kernel begin before the one before it on its stream has ended."""
    whole = drawn(KERNELS, 1000)
    for event in whole["traceEvents"]:
        if event["cat"] == "kernel":
            event["dur"] += 1_000
    path = tmp_path / "pdl.pt.trace.json"
    path.write_text(json.dumps(whole))
    report = diagnose(str(path))
    assert sum(row.share for row in report.account) == pytest.approx(1)
    # 7 ms of kernels in 10 ms steps: 3 x 2 ms, of which the last reaches 1 ms further
    assert {row.regime: row.share for row in report.account}["compute"] == pytest.approx(0.7, abs=0.03)


def test_kernels_whose_launches_were_not_recorded_still_own_their_time(tmp_path):
    whole = drawn(KERNELS, 1000)
    whole["traceEvents"] = [event for event in whole["traceEvents"] if event["cat"] != "cuda_runtime"]
    path = tmp_path / "unlaunched.pt.trace.json"
    path.write_text(json.dumps(whole))
    shares = {row.regime: row.share for row in diagnose(str(path)).account}
    assert shares["compute"] == pytest.approx(0.6, abs=0.03)
    assert sum(shares.values()) == pytest.approx(1)


def test_work_on_two_streams_is_counted_once():
    found = account(
        drawn_trace("""
            step    aaaaaaaaaabbbbbbbbbb
            gpu     .aaaaaaa...bbbbbbb..
            nccl    ...nnnnnn....mmmmmm.
        """)
    )
    assert found.share("compute") == pytest.approx(0.7, abs=0.02)
    assert found.share("communication") == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_rows_are_missing_the_account_sums_to_the_window(tmp_path, seed):
    """CUPTI drops rows, users switch kinds of rows off, and jobs are killed: each part of a recording may be gone."""
    rng, workload = random.Random(seed), random_workload(seed)
    whole = json.loads(kineto_json(Machine(program_of(workload)).run(), Recording(rng.choice(DIALECTS), noise=True)))
    gone = rng.choice(["cuda_runtime", "cpu_op", "user_annotation", "gpu_memcpy", "python_function", "half", "late"])
    events = whole["traceEvents"]
    if gone == "half":
        events = [event for event in events if rng.random() < 0.5]
    elif gone == "late":
        events = events[len(events) // 3 :]
    else:
        events = [event for event in events if event.get("cat") != gone]
    path = tmp_path / "odd.pt.trace.json"
    path.write_text(json.dumps(whole | {"traceEvents": events}))
    report = diagnose(str(path))
    assert report.health.status in ("ok", "degraded", "incomplete")
    assert "broken" not in [verdict.status for verdict in report.regimes], gone
    if report.account:
        assert sum(row.share for row in report.account) == pytest.approx(1)
        assert all(0 <= row.share <= 1 for row in report.account)
