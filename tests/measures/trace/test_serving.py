"""The steps of inference servers, by the names that vLLM and SGLang give them."""

import json

import pytest

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.diagnosis.parts import Parts, details_of
from tb_bottleneck.measures.trace.serving import shape_of
from tb_bottleneck.report.rendering import details as text
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load


@pytest.mark.parametrize(
    ("name", "kind", "work"),
    [
        ("execute_context_1(983)_generation_0(0)", "prefill", (1, 983, 0, 0)),
        ("execute_context_0(0)_generation_32(32)", "decode", (0, 0, 32, 32)),
        ("execute_context_2(128)_generation_8(8)", "mixed", (2, 128, 8, 8)),
        ("execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)", "decode", (0, 0, 32, 32)),
        ("execute_new_1_cached_3", "mixed", (1, None, 3, None)),
        ("step[DECODE bs=63]", "decode", (0, 0, 63, 63)),
        ("step[EXTEND bs=17 toks=8192]", "prefill", (17, 8192, 0, 0)),
        ("step[prefill bs=1 toks=5]", "prefill", (1, 5, 0, 0)),
        ("step[MIXED bs=5 ext=100 dec=3]", "mixed", (2, 100, 3, 3)),
        ("step[MIXED bs=66 c=2 g=64 c_sq=2048 c_sk=9 g_sq=64 g_sk=9]", "mixed", (2, 2048, 64, 64)),
        ("step[TARGET_VERIFY bs=4]", "other", (None, None, None, None)),
    ],
)
def test_names(name, kind, work):
    shape = shape_of(name)
    assert shape.kind == kind
    assert (shape.prefill_requests, shape.prefill_tokens, shape.decode_requests, shape.decode_tokens) == work


@pytest.mark.parametrize("name", ["execute_model", "step[0] failed", "ProfilerStep#1", "step[DECODE bs=x]"])
def test_other_names(name):
    assert shape_of(name) is None


def test_steps_by_kind_and_shape(tmp_path):
    names = ["step[EXTEND bs=1 toks=900]", "step[DECODE bs=4]", "step[DECODE bs=4]", "step[DECODE bs=2]"]
    begins, lengths = [0, 1_500, 2_000, 2_600], [1_000, 400, 400, 300]  # us; pauses of 500, 100 and 200
    events = []
    for number, (name, begin, length) in enumerate(zip(names, begins, lengths, strict=True)):
        row = {"ph": "X", "pid": 1, "tid": 1}
        events.append(row | {"cat": "user_annotation", "name": name, "ts": begin, "dur": length})
        events.append(row | {"cat": "user_annotation", "name": "step[DECODE bs=1]", "ts": begin + 10, "dur": 50})
        link = {"correlation": number + 1, "device": 0, "stream": 7, "grid": [999, 1, 1]}
        call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": begin + 100, "dur": 5, "args": link}
        kernel = {
            "cat": "kernel",
            "name": "gemm",
            "pid": 0,
            "tid": 7,
            "ts": begin + 110,
            "dur": length // 2,
            "args": link,
        }
        events += [row | call, row | kernel]
    path = tmp_path / "s.pt.trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    trace = load(str(path))
    serving = details_of(Recording(trace, find_steps(trace)), Parts()).serving
    kinds = {row.kind: (row.count, row.step_ns, row.device_ns) for row in serving.kinds}
    assert kinds == {"prefill": (1, 1e6, 5e5), "decode": (3, 4e5, 2e5)}
    shares = {(row.kind, row.decode_requests): round(row.share * 2_900) for row in serving.shapes}
    assert shares == {("prefill", 0): 1_000, ("decode", 4): 1_400, ("decode", 2): 500}
    pauses = {row.kind: row.pause_ns if row.HasField("pause_ns") else None for row in serving.kinds}
    assert pauses == {"prefill": None, "decode": 200_000}
    assert "decode 4 requests, 4 tokens" in "\n".join(text.serving_lines(serving))
