"""Timers of a drawn program on a GPU, which read the clock before the device is done, or after it."""

import json
import re

import pytest

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.user_code.timers import early_timers
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

STEP = 1_000
CLOCK = "<built-in function perf_counter>"
ON_CPU = {"ph": "X", "pid": 7, "tid": 7}


def timed(tmp_path, *, waits=False, clock=CLOCK, caller="train.py(5): step", device=True, dur=1):
    """Three steps of 1 ms. The caller reads the clock at 100 and at 200 us; the kernel between them runs until 600."""
    rows = []
    for step in range(3):
        begin = step * STEP
        frame = {"cat": "python_function", "name": caller, "ts": begin + 50, "dur": 900}
        clocks = [
            {"cat": "python_function", "name": clock, "ts": begin + at, "dur": dur}
            for at in (99, 700 if waits else 200)
        ]
        launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": begin + 110, "dur": 5}
        wait = {"cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "ts": begin + 120, "dur": 490}
        mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": STEP}
        rows += [ON_CPU | row for row in (mark, frame, *clocks)]
        for number in range(10) if device else ():
            at, linked = 5 * number, {"args": {"correlation": 100 * step + number + 1}}
            rows.append(ON_CPU | launch | {"ts": begin + 110 + at} | linked)
            kernel = {"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "dur": 45}
            rows.append(kernel | {"ts": begin + 150 + 45 * number} | linked)
        rows += [ON_CPU | wait | {"ts": begin + 165, "dur": 440}] if waits and device else []
        rows += [
            ON_CPU | {"cat": "cpu_op", "name": "aten::mm", "ts": begin + 101 + 5 * at, "dur": 4} for at in range(10)
        ]
    path = tmp_path / "t.pt.trace.json"
    properties = [{"id": 0, "name": "NVIDIA A100"}] if device else []
    path.write_text(json.dumps({"traceEvents": rows, "deviceProperties": properties, "with_stack": 1}))
    return str(path)


def timers_of(path):
    trace = load(path)
    return early_timers(Recording(trace, find_steps(trace)))


@pytest.mark.parametrize("dur", [0, 1])
def test_a_clock_that_is_read_before_the_device_is_done(tmp_path, dur):
    path = timed(tmp_path, dur=dur)
    (timer,) = timers_of(path)
    assert timer.frame == "train.py(5): step"
    assert timer.measured == pytest.approx(100_000, abs=2_000)
    assert timer.missed == pytest.approx(400_000, abs=2_000)
    said = diagnose(path).verdict.situation
    about = r"step \(train.py:5\) reads the clock after 10[01] µs, and the device has done this work 400 µs later"
    assert re.search(about, said)
    assert "torch.cuda.synchronize()" in said


@pytest.mark.parametrize(
    "other",
    [
        {"waits": True},
        {"clock": "<built-in function len>"},
        {"caller": "torch/utils/benchmark/utils/timer.py(5): step"},
        {"device": False},
    ],
    ids=lambda other: next(iter(other)),
)
def test_other_functions_have_no_such_timer(tmp_path, other):
    path = timed(tmp_path, **other)
    assert timers_of(path) == ()
    assert "reads the clock" not in diagnose(path).verdict.situation
