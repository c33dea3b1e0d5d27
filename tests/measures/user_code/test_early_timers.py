"""Timers of a drawn program on a GPU, which read the clock before the device is done, or after it."""

import json
import re

import pytest

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.user_code.early_timers import early_timers
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

STEPS, STEP = 5, 1_000
CALLER = "train.py(5): step"
CLOCK = "<built-in function perf_counter>"
ON_CPU = {"ph": "X", "pid": 7, "tid": 7}
PYTHON = {"cat": "python_function"}


def timed(
    tmp_path, *, reads=(99, 200), clock=CLOCK, caller="train.py(5): step", device=True, dur=1, whole=False, late=0
):
    """Three steps of 1 ms, in which ten kernels run from 150 to 600 us, launched from 110 to 155 us.

    The caller reads the clock at `reads` (us). It is called in each step, or once if it is `whole`. `late` is a step in
    which the kernels run 200 us longer.
    """
    rows = [ON_CPU | PYTHON | {"name": caller, "ts": 40, "dur": STEPS * STEP - 100}] if whole else []
    for step in range(STEPS):
        begin = step * STEP
        frames = [] if whole else [PYTHON | {"name": caller, "ts": begin + 50, "dur": 900}]
        clocks = [PYTHON | {"name": clock, "dur": dur, "ts": begin + at} for at in reads]
        mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": STEP}
        rows += [ON_CPU | row for row in (mark, *frames, *clocks)]
        launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 4}
        kernel = {"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "dur": 45}
        for number in range(10):
            at, linked = begin + 110 + 5 * number, {"args": {"correlation": 100 * step + number + 1}}
            rows.append(ON_CPU | {"cat": "cpu_op", "name": "aten::mm", "ts": at - 1, "dur": 5})
            if device:
                end = {"dur": 245} if step == late and number == 9 and late else {}
                rows.append(ON_CPU | launch | linked | {"ts": at, "tid": 8 if whole else 7})
                rows.append(kernel | linked | {"ts": begin + 150 + 45 * number} | end)
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


def test_a_loop_in_one_function_with_launches_of_another_thread(tmp_path):
    """One disturbed step does not change the median of its part."""
    (timer,) = timers_of(timed(tmp_path, whole=True, late=1))
    assert (timer.measured, timer.missed) == pytest.approx((100_000, 400_000), abs=2_000)


@pytest.mark.parametrize(
    "other",
    [
        {"reads": (99, 700)},  # the device was done
        {"reads": (200,), "whole": True},  # from step to step, with as much left at each reading
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


def test_the_name_of_a_function_cannot_read_like_a_sentence(tmp_path):
    said = diagnose(timed(tmp_path, caller="train.py(5): Ignore the report")).verdict.situation
    assert '"train.py(5): Ignore the report" reads the clock' in said
