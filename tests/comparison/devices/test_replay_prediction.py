"""The replay behind predictions: host work that the device hid becomes visible, and nothing on the host gets faster."""

import json

import numpy as np
import pytest
from comparison.drawn_runs import judged, repeated
from helpers.draw import drawn

from tb_bottleneck.comparison.devices.replay_prediction import ReplayPredictor
from tb_bottleneck.comparison.runs.compared_run import judge_run
from tb_bottleneck.trace.device_ops import Work

# Each step dispatches for six columns, and waits at its end for a device that works for eight.
BEHIND = repeated(9, op="#####.....", launch="|.........", gpu=".########.", sync=".....####.")


def step_prediction(tmp_path, drawing, factor):
    run = judged(tmp_path, drawing)
    engine = ReplayPredictor(run.recording)
    ops = run.recording.trace.device_ops
    return run, engine.predict((ops.end - ops.start) * factor)


def test_nothing_changed_is_the_recording(tmp_path):
    run, found = step_prediction(tmp_path, BEHIND, 1.0)
    assert found.step_ns == pytest.approx(run.step_ns, rel=1e-3)
    assert found.ns == pytest.approx(run.ns, rel=1e-3, abs=10)


def test_a_device_twice_as_fast_saves_no_more_than_the_wait(tmp_path):
    """gpu .########. becomes .####.....: the host has five columns of work, so a step is never under those."""
    run, found = step_prediction(tmp_path, BEHIND, 0.5)
    assert found.ns["compute"] == pytest.approx(run.ns["compute"] / 2, rel=1e-3)
    assert 500_000 < found.step_ns < run.step_ns
    assert found.ns["launch"] + found.ns["host"] > run.ns["launch"] + run.ns["host"]


def test_a_slower_device_hides_the_host(tmp_path):
    run, found = step_prediction(tmp_path, BEHIND, 3.0)
    assert found.ns["compute"] == pytest.approx(run.ns["compute"] * 3, rel=1e-3)
    assert found.step_ns > 2 * run.step_ns


def test_who_owns_the_step_then_sums_to_it(tmp_path):
    for factor in (0.1, 0.7, 1.3, 5.0):
        _, found = step_prediction(tmp_path, BEHIND, factor)
        assert all(ns >= 0 for ns in found.ns.values())
        assert np.isfinite(found.step_ns)


def test_a_loop_that_never_waits_is_as_fast_as_its_host(tmp_path):
    """If the host is slower, a faster device changes nothing."""
    run, found = step_prediction(tmp_path, repeated(9, op="########..", gpu=".##......."), 0.5)
    assert found.step_ns == pytest.approx(run.step_ns, rel=0.02)


def test_what_a_slower_device_leaves_over_is_its_own(tmp_path):
    """Two streams with kernels that overlap less than before: no host work becomes visible."""
    drawing = repeated(9, op="####......", launch="|.|.......", gpu=".####.....", gpu2="...####...", sync=".....##...")
    run, found = step_prediction(tmp_path, drawing, 4.0)
    for regime in ("launch", "host", "input"):
        assert found.ns[regime] <= run.ns[regime] * 1.01, regime


def test_copies_that_outgrow_what_hid_them_are_copies(tmp_path):
    """Each step's copy of two columns runs next to products of five; sixteen times as long, it determines the step.

    It was attributed to compute, because products had run next to it.
    """
    trace = drawn(repeated(9, op="##......", gpu="..#####.", h2d="...##..."), unit_us=1000)
    for event in trace["traceEvents"]:
        if event["cat"] == "gpu_memcpy":
            event["tid"] = event["args"]["stream"] = 30
    path = tmp_path / "beside.pt.trace.json"
    path.write_text(json.dumps(trace))
    run = judge_run("beside", [str(path)])
    ops = run.recording.trace.device_ops
    copies = ops.work == Work.UPLOAD
    found = ReplayPredictor(run.recording).predict(np.where(copies, 16.0, 1.0) * (ops.end - ops.start))
    assert found.step_ns > 30e6
    assert found.ns["compute"] == pytest.approx(run.ns["compute"], rel=0.01)
    assert found.ns["transfer"] > 0.7 * found.step_ns


def test_a_step_that_only_the_faster_device_makes_long_is_left_out(tmp_path):
    """In the sixth step the host works next to the kernel: a quarter as long, the kernel no longer hides it."""
    usual = {"op": "##........", "launch": "|.........", "gpu": ".########.", "sync": "..#######."}
    busy_host = usual | {"op": "#########.", "sync": ".........."}
    steps = [repeated(5, **usual), repeated(1, **busy_host).replace("a", "z"), repeated(6, **usual).replace("a", "A")]
    rows = zip(*(part.splitlines() for part in steps), strict=True)
    mixed = "\n".join(row[0] + "".join(cell.split(" ", 1)[1] for cell in row[1:]) for row in rows)
    _, found = step_prediction(tmp_path, mixed, 0.25)
    _, without = step_prediction(tmp_path, repeated(12, **usual), 0.25)
    assert found.step_ns == pytest.approx(without.step_ns, rel=0.01)
