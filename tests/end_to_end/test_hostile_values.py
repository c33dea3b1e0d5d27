"""Traces that are valid JSON with hostile numbers: everything that is computed from them stays possible."""

import json
import os

import pytest
from fuzz import BROKEN_REPLAY, drill_down

from tb_bottleneck.comparison.compare import compare_runs
from tb_bottleneck.comparison.runs.compared_run import open_recordings
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.report.json_form import as_json
from tb_bottleneck.text.report import render
from tb_bottleneck.trace.trace import load

BEFORE, AFTER = -9.0e15, 9.0e15  # us: their difference does not fit into int64 ns
FP32 = "ampere_sgemm_128x64_nn"


def event(cat, name, ts, dur=0.0, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


def kernel(ts, dur=5.0, name="k", stream=7, **args):
    return event("kernel", name, ts, dur, device=0, stream=stream, **args)


def step(number, ts, dur):
    return event("user_annotation", f"ProfilerStep#{number}", ts, dur)


KERNELS = [kernel(10.0 * place) for place in range(10)]
TWO_STREAMS = [
    kernel(100.0 * number + offset, 90.0, FP32, stream)
    for number in range(12)
    for stream, offset in ((7, 0.0), (9, 5.0))
]
HUGE = 10**400
HEADER = {"deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}]}

CASES = {
    "kernels_far_before_and_after": [kernel(BEFORE), *KERNELS, kernel(AFTER)],
    "steps_far_before": [step(1, BEFORE, 1.0), step(2, BEFORE + 10, 1.0), *KERNELS, event("cpu_op", "a", BEFORE, 82)],
    "launch_far_before": [event("cuda_runtime", "cudaLaunchKernel", BEFORE, correlation=7), step(3, 0, 100)]
    + [kernel(10.0 * place, correlation=7) for place in range(10)],
    "all_durations_of_a_week": [kernel(10.0 * place, 6e11) for place in range(8_000)],
    "huge_shapes": [
        event("cpu_op", "aten::copy_", 0, 3, **{"Input Dims": [[HUGE], [HUGE], []], "Input type": ["float"] * 3}),
        event("cuda_runtime", "cudaLaunchKernel", 1, 1, correlation=1),
        *(kernel(10.0 + 10 * place, correlation=1 + 100 * place) for place in range(10)),
    ],
    "many_large_dimensions": [
        event("cpu_op", "aten::copy_", 0, 3, **{"Input Dims": [[2**40] * 300] * 2, "Input type": ["float"] * 2}),
        event("cuda_runtime", "cudaLaunchKernel", 1, 1, correlation=1),
        *(kernel(10.0 + 10 * place, correlation=1 + 100 * place) for place in range(10)),
    ],
    "two_marks_of_one_step": [step(2, 100.0, 0), step(2, 100.0, 49.0), *(kernel(t * 10.0, 0) for t in range(1, 20))],
    "marks_without_length": [step(1, 100.0, 0), *KERNELS],
    "kernels_without_length": [
        *(kernel(t / 1000, 0) for t in range(6)),
        step(1, 1, 0),
        kernel(1.1, 0, "aten::copy_"),
        step(2, 1.1, 1.0),
        kernel(1.0, 0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
    ],
    "two_streams_of_products": TWO_STREAMS,
    "copies_of_impossible_size": [
        event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 10.0 * place, 5, device=0, stream=7, bytes=2**62 - 1)
        for place in range(20)
    ],
    "collectives_of_impossible_size": [
        kernel(10.0 * place, 5, "ncclDevKernel_AllReduce", dtype="Float", **{"In msg nelems": 2**61})
        for place in range(20)
    ],
    "memory_of_impossible_size": [
        *KERNELS,
        *(
            {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 9.0 * place}
            | {"args": {"Device Type": 1, "Device Id": 0, "Addr": place + 1, "Bytes": 2**61}}
            | {"args": {"Total Allocated": 2**61, "Total Reserved": 2**61, "Bytes": 2**61, "Device Type": 1}}
            for place in range(50)
        ),
    ],
}
CONTEXTS = {
    "precision_that_is_no_type": {"precision": "cpu", "samples": "many", "device_kind": "cpu"},
    "numbers_of_any_size": {"cores": HUGE, "torch_threads": -1, "link_lanes": "9" * 400, "calibration": []},
}


@pytest.fixture(params=[*CASES, *CONTEXTS])
def hostile(request, tmp_path):
    """The path of a trace of a case."""
    more = {"tb_bottleneck": {"context": CONTEXTS[request.param]}} if request.param in CONTEXTS else {}
    return written(tmp_path, CASES.get(request.param, TWO_STREAMS), **more)


def written(folder, events, **more):
    path = folder / "hostile.pt.trace.json"
    path.write_text(json.dumps({**HEADER, **more, "traceEvents": events}))
    os.utime(path, (1e9, 1e9))
    return str(path)


def test_every_part_of_the_report_is_possible(hostile):
    report = diagnose(hostile)
    assert [reason.detail for reason in report.health.reasons if reason.code == "broken"] == []
    assert [verdict.regime for verdict in report.regimes if verdict.status == "broken"] == []
    assert report.replay.because != BROKEN_REPLAY
    shares = [row.share for row in report.account] + [row.share for row in report.regimes]
    assert all(0 <= share <= 1 for share in [*shares, *(finding.cost_share for finding in report.findings)])
    assert not shares or sum(row.share for row in report.account) == pytest.approx(1)
    as_json(report)
    render(report)


def test_details_and_comparisons_are_possible(hostile, tmp_path):
    drill_down(load(hostile))
    (tmp_path / "sound").mkdir()
    sound = written(tmp_path / "sound", TWO_STREAMS)
    for a, b in ((hostile, hostile), (hostile, sound), (sound, hostile)):
        as_json(compare_runs(open_recordings("a", [a], [], None), open_recordings("b", [b], [], None)))


def test_overlapping_kernels_count_once(tmp_path):
    report = diagnose(written(tmp_path, TWO_STREAMS))
    (finding,) = [finding for finding in report.findings if finding.cause == "fp32_matmul"]
    assert 0.9 < finding.cost_share < 1.0


def test_far_events_are_lost_and_the_others_judged(tmp_path):
    trace = load(written(tmp_path, CASES["kernels_far_before_and_after"]))
    assert (len(trace.events), dict(trace.lost)) == (10, {"time far from the others": 2})


def test_the_longest_durations_are_lost_if_their_sum_overflows(tmp_path):
    trace = load(written(tmp_path, [*KERNELS, *CASES["all_durations_of_a_week"]]))
    assert 0 < int(trace.events.duration[:].sum()) <= 2**62
    assert trace.events.duration.tolist().count(5000) == 10
    assert trace.lost["durations too long together"] > 0
