"""Regimes of operators on the CPU: decided by their type, unless their shapes show too little arithmetic."""

import json
from math import exp, hypot

import pytest

from tb_bottleneck.attribution.cpu_attribution import operators_of, undisturbed_share
from tb_bottleneck.base.deviations import HOST_DRIFT, QUANTILE, RUN_TO_RUN_NOISE
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.trace.trace import load

IMAGES = [4, 64, 64, 64]
DENSE = [IMAGES, [64, 64, 7, 7], [64], [], [], [], []]
DEPTHWISE = [IMAGES, [64, 1, 1, 1], [64], [], [], [], []]


def account_of(tmp_path, operator, args):
    """Returns four steps of 10 ms on the CPU; in each, ten calls of one operator take 90 % of the time."""
    events = []
    for step in range(4):
        row = {"ph": "X", "pid": 1, "tid": 1, "ts": step * 10_000}
        events.append(row | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "dur": 10_000})
        for number in range(10):
            when = {"ts": step * 10_000 + number * 1000, "dur": 900}
            events.append(row | when | {"cat": "cpu_op", "name": operator, "args": args})
    path = tmp_path / "t.pt.trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    report = diagnose(str(path))
    return {share.regime: share.share for share in report.account}, report


def convolved(dims, groups):
    concrete = ["", "", "", "[0, 0]", "[1, 1]", "[1, 1]", groups]
    return {"Input Dims": dims, "Input type": ["float"] * 3 + [""] * 4, "Concrete Inputs": concrete}


@pytest.mark.parametrize(
    ("dims", "groups", "regime"), [(DENSE, "1", "compute"), (DEPTHWISE, "64", "memory"), (None, "", "compute")]
)
def test_a_convolution_with_little_arithmetic_is_bound_by_memory(tmp_path, dims, groups, regime):
    args = {} if dims is None else convolved(dims, groups)
    account, report = account_of(tmp_path, "aten::mkldnn_convolution", args)
    assert account[regime] == pytest.approx(0.9, abs=0.01)
    assert report.verdict.regime == regime


@pytest.mark.parametrize(("batch", "regime"), [(1, "memory"), (64, "compute")])
def test_a_product_with_one_vector_reads_each_weight_for_two_operations(tmp_path, batch, regime):
    dims = [[1024], [batch, 1024], [1024, 1024], [], []]
    account, _ = account_of(tmp_path, "aten::addmm", {"Input Dims": dims, "Input type": ["float"] * 3 + ["", ""]})
    assert account[regime] == pytest.approx(0.9, abs=0.01)


@pytest.mark.parametrize("dims", [[["x"]], "[[", [[2**62] * 64] * 3, [[], [], []]])
def test_shapes_that_make_no_sense_leave_the_kind(tmp_path, dims):
    account, _ = account_of(tmp_path, "aten::mm", {"Input Dims": dims, "Input type": ["float", "float"]})
    assert account["compute"] == pytest.approx(0.9, abs=0.01)


def trained_with_pauses(tmp_path, lengths, cause, dims):
    """Writes a trace of steps that log or save for 20 ms, then work for the given lengths in ms; returns its path."""
    events, now = [], 0
    for number, length in enumerate(lengths):
        row = {"ph": "X", "pid": 1, "tid": 1}
        span = {"ts": now, "dur": 20_000 + length * 1000}
        events.append(row | span | {"cat": "user_annotation", "name": f"ProfilerStep#{number}"})
        events.append(row | {"cat": "python_function", "name": cause, "ts": now, "dur": 20_000})
        for part in range(10):
            when = {"ts": now + 20_000 + part * length * 100, "dur": length * 95}
            args = {"Input Dims": dims, "Input type": ["float", "float"]} if dims else {}
            events.append(row | when | {"cat": "cpu_op", "name": "aten::mm", "args": args})
        now += span["dur"]
    path = tmp_path / "t.pt.trace.json"
    path.write_text(json.dumps({"traceEvents": events, "with_stack": 1, "record_shapes": 1}))
    return path


LOGS = "torch/utils/tensorboard/writer.py(465): add_histogram"
SAVES = "torch/serialization.py(943): save"  # no writer thread goes on beside the next step
SQUARE = [[512, 512], [512, 512]]


def test_disturbance_of_operators_is_measured_against_the_fastest_of_their_kind(tmp_path):
    trace = load(str(trained_with_pauses(tmp_path, (20, 30, 10, 20), LOGS, SQUARE)))
    thread = int(trace.events.thread[0])
    assert undisturbed_share(trace, operators_of(trace, thread)) == pytest.approx(10 / 20, rel=0.05)
    assert undisturbed_share(trace, operators_of(trace, None)) == 1.0
    without = load(str(trained_with_pauses(tmp_path, (20, 30, 10, 20), LOGS, None)))
    assert undisturbed_share(without, operators_of(without, thread)) == 1.0


def test_at_best_the_fix_of_an_interruption_gives_undisturbed_work(tmp_path):
    """Even operators get quicker by 0.18 of the share that the interruptions had."""
    gains = {}
    for lengths in ((20, 20, 20, 20), (30, 30, 10, 10)):
        report = diagnose(str(trained_with_pauses(tmp_path, lengths, SAVES, SQUARE)))
        gains[lengths] = next(finding.speedup for finding in report.findings if finding.cause == "checkpointing")
    even, uneven = gains.values()
    of_next_run = exp(hypot(QUANTILE * HOST_DRIFT, RUN_TO_RUN_NOISE))
    assert even.high == pytest.approx(2.0 / (1 - 0.18 / 2) * of_next_run, rel=0.05)
    assert uneven.expected == pytest.approx(even.expected, rel=0.05)
    assert uneven.high == pytest.approx(4.0, rel=0.1)
