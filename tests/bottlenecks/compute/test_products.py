"""Tests that attention as single operators is found by its sequence, and work in float64 by its recorded types."""

import json

import pytest
from helpers.typed_runs import ON_A_GPU, ON_THE_CPU, typed_file, typed_recording

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.bottlenecks.compute.wide_types import costliest_in_double, double_precision_share
from tb_bottleneck.bottlenecks.memory.attention import MAX_OPERATORS_BETWEEN, attention_passes, unfused_attention_share
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

ATTENTION = ("aten::bmm", "aten::mul", "aten::_softmax", "aten::bmm")


def write(path, operators, steps=4):
    """Writes steps in which each operator takes 1 ms; on the device its kernel takes 1 ms, too."""
    events, at = [], 0
    row = {"ph": "X", "pid": 1, "tid": 1}
    for step in range(steps):
        events.append(row | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at})
        begin = at
        for name in operators:
            link = {"correlation": len(events), "device": 0, "stream": 7, "grid": [999, 1, 1]}
            kernel = "sm80_xmma_gemm_f32" if name in ("aten::bmm", "aten::mm") else "vectorized_elementwise_kernel<4>"
            events += [
                row | {"cat": "cpu_op", "name": name, "ts": at, "dur": 990},
                row | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 1, "dur": 3, "args": link},
                row | {"cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": at + 10, "dur": 985, "args": link},
            ]
            at += 1000
        events[next(i for i, e in enumerate(events) if e["name"] == f"ProfilerStep#{step}")]["dur"] = at - begin
    properties = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}]
    path.write_text(json.dumps({"traceEvents": events, "deviceProperties": properties}))
    return str(path)


def recorded(tmp_path, operators):
    trace = load(write(tmp_path / "t.pt.trace.json", operators))
    return Recording(trace, find_steps(trace))


def test_the_work_between_the_products_is_the_cost(tmp_path):
    recording = recorded(tmp_path, [*ATTENTION, "aten::mm", "aten::add"])
    assert attention_passes(recording).value == 1
    assert unfused_attention_share(recording).value == pytest.approx(2 / 6, abs=0.01)  # the scaling and the softmax


@pytest.mark.parametrize(
    "operators",
    [
        ["aten::bmm", "aten::mul", "aten::bmm", "aten::_softmax"],
        ["aten::mm", "aten::_softmax", "aten::mm", "aten::add"],
        ["aten::_scaled_dot_product_flash_attention", "aten::mm", "aten::_softmax", "aten::add"],
        ["aten::bmm", *["aten::add"] * MAX_OPERATORS_BETWEEN, "aten::_softmax", "aten::bmm"],
    ],
)
def test_other_sequences_are_no_attention(tmp_path, operators):
    recording = recorded(tmp_path, operators)
    assert attention_passes(recording).value == 0
    assert unfused_attention_share(recording).value == 0


def test_fused_attention_is_advised(tmp_path):
    report = diagnose(write(tmp_path / "t.pt.trace.json", [*ATTENTION, *ATTENTION, "aten::mm"]))
    found = {finding.cause: finding for finding in report.findings}
    assert "scaled_dot_product_attention" in found["unfused_attention"].fix.code


BOTH = pytest.mark.parametrize("drawing", [ON_THE_CPU, ON_A_GPU], ids=["cpu", "gpu"])


@BOTH
def test_work_in_float64_leads_with_a_simulated_gain(tmp_path, drawing):
    first = diagnose(typed_file(tmp_path, drawing, "double")).findings[0]
    assert first.cause == "double_precision"
    assert first.speedup.basis == "replay"
    assert first.speedup.expected > 1.2


@BOTH
@pytest.mark.parametrize(("types", "share"), [(("double",), 0.8), (("double", "float"), 0.4), (("float",), 0.0)])
def test_its_share_is_of_the_window(tmp_path, drawing, types, share):
    assert double_precision_share(typed_recording(tmp_path, drawing, *types)).value == pytest.approx(share, abs=0.01)


@BOTH
def test_scalars_in_float64_do_not_count(tmp_path, drawing):
    """A Python number in an operation with a float32 tensor is recorded as double, and computes in float32."""
    assert double_precision_share(typed_recording(tmp_path, drawing, "double", dims=())).value == 0


def test_the_longest_operator_is_named(tmp_path):
    assert costliest_in_double(typed_recording(tmp_path, ON_THE_CPU, "double")).text == "aten::linear"
