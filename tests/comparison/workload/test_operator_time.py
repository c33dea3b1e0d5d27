"""Tests peaks by category, device time by operator with its kernels, and the speed of two hosts."""

import pytest
from comparison.drawn_runs import judged, repeated

from tb_bottleneck.comparison.workload.operator_time import (
    OperatorTime,
    changed_kernels,
    device_operators,
    host_ratio,
    memory_rows,
)
from tb_bottleneck.schema import bottleneck_pb2 as pb


def report(**parts: float) -> pb.Report:
    rows = [pb.MemoryPart(kind=kind, bytes=size, title=kind.title()) for kind, size in parts.items()]
    return pb.Report(memory=pb.Memory(peak_bytes=sum(parts.values()), parts=rows))


def test_differences_are_listed_largest_first():
    rows = memory_rows(
        report(parameters=10e9, activations=20e9, inputs=1e9), report(parameters=10e9, activations=5e9, gradients=2e9)
    )
    assert [(row.key, row.a, row.b) for row in rows] == [
        ("memory_peak", "31.0 GB", "17.0 GB"),
        ("memory_activations", "20.0 GB", "5.0 GB"),
        ("memory_gradients", "0 B", "2.0 GB"),
        ("memory_inputs", "1.0 GB", "0 B"),
    ]
    assert rows[1].title == "memory: activations"


def test_equal_memory_and_unknown_memory_have_no_rows():
    assert memory_rows(report(parameters=10e9), report(parameters=10.1e9)) == []
    assert memory_rows(report(parameters=10e9), pb.Report()) == []


LINEAR = repeated(9, op="##......", launch=".|......", gpu="..####..")


def test_device_time_belongs_to_the_operator_that_launched_it(tmp_path):
    found = device_operators(judged(tmp_path, LINEAR).recording)
    assert list(found) == ["aten::linear"]
    assert found["aten::linear"].ns == pytest.approx(400_000, rel=0.01)
    assert "xmma_gemm" in found["aten::linear"].kernel


def test_another_kernel_for_the_same_operator_is_named(tmp_path):
    streamed = repeated(9, op="##......", launch=".|......", stream="..####..")
    a, b = judged(tmp_path, LINEAR).recording, judged(tmp_path, streamed).recording
    assert list(changed_kernels(a, b)) == ["aten::linear"]
    assert changed_kernels(a, a) == {}


def test_a_kernel_that_both_run_now_and_then_is_not_another_one():
    """The longer of two kernels may differ from recording to recording."""
    first, second = (
        OperatorTime(3.0, "gemm_a", frozenset({"gemm_a", "gemm_b"})),
        OperatorTime(3.0, "gemm_b", frozenset({"gemm_b"})),
    )
    assert not first.runs_others(second)


def test_too_few_operators_tell_nothing_of_the_hosts(tmp_path):
    recording = judged(tmp_path, LINEAR).recording
    assert host_ratio(recording, recording) is None


def test_a_host_that_is_half_as_fast_is_seen_by_its_operators(tmp_path):
    slow, fast = (slowed(tmp_path, factor) for factor in (2.0, 1.0))
    assert host_ratio(fast, slow) == pytest.approx(2.0)


def slowed(tmp_path, factor):
    """A recording with many small operators of several kinds, each taking `factor` as long as it might."""
    import json

    from helpers.draw import drawn

    from tb_bottleneck.comparison.runs.compared_run import judge_run

    trace = drawn(LINEAR)
    for number in range(120):
        event = {"ph": "X", "cat": "cpu_op", "name": f"aten::op{number % 6}", "pid": 100, "tid": 100}
        trace["traceEvents"].append(event | {"ts": 1000.0 + 40 * number, "dur": 3.0 * factor, "args": {}})
    path = tmp_path / f"slowed_{factor}.pt.trace.json"
    path.write_text(json.dumps(trace))
    return judge_run("slowed", [str(path)]).recording
