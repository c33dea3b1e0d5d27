"""Fused attention takes the time of its products at the rate of the linear layers of the recording."""

import json

import pytest

from tb_bottleneck.bottlenecks.memory import fixes as attention
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.roofline.device_peaks import Peaks

LINEAR = ("aten::mm", [[1000, 1000], [1000, 1000]])  # 2e9 operations in 1 ms


def operators_of(queries):
    """Returns operators of attention whose two products have 1e9 operations each."""
    scores, values = [1, queries, 1000], [1, 1000, 500_000 // queries]
    return (
        ("aten::bmm", [[1, queries, 500_000 // queries], values[:1] + values[:0:-1]]),
        ("aten::mul", [scores, []]),
        ("aten::_softmax", [scores, [], []]),
        ("aten::bmm", [scores, values]),
    )


def written(path, on_device, shapes=True, steps=4, dtype="float", queries=500):
    """Writes steps of five operators of 1 ms."""
    events, at = [], 0
    row = {"ph": "X", "pid": 1, "tid": 1}
    for step in range(steps):
        begin = at
        for number, (name, dims) in enumerate((LINEAR, *operators_of(queries))):
            host = begin + 110 * number if on_device else at
            types = [dtype if dim else "Scalar" for dim in dims]
            args = {"Input Dims": dims, "Input type": types} if shapes else {}
            events.append(
                row | {"cat": "cpu_op", "name": name, "ts": host, "dur": 100 if on_device else 1000, "args": args}
            )
            if on_device:
                link = {"correlation": len(events), "device": 0, "stream": 7, "grid": [999, 1, 1]}
                kernel = "sm80_xmma_gemm_f32" if name.endswith("mm") else "vectorized_elementwise_kernel<4>"
                events += [
                    row | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": host + 1, "dur": 3, "args": link},
                    row
                    | {"cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": at + 10, "dur": 1000, "args": link},
                ]
            at += 1000
        if on_device:
            wait = {"name": "cudaDeviceSynchronize", "ts": begin + 600, "dur": at + 10 - begin - 600}
            events.append(row | {"cat": "cuda_runtime", **wait})
            at += 50
        events.append(row | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": at - begin})
    properties = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}] if on_device else []
    path.write_text(json.dumps({"traceEvents": events, "deviceProperties": properties, "record_shapes": 1}))
    return {finding.cause: finding for finding in diagnose(str(path)).findings}


@pytest.mark.parametrize(("queries", "rates"), [(1000, (0.6, 1.0, 1.5)), (500, (0.3, 0.45, 0.9))])
def test_on_the_cpu_the_rate_follows_that_of_the_linear_layers(tmp_path, queries, rates):
    """2e9 operations take 1 ms at the rate of the linear layers. The kernel is slower for few queries."""
    path = tmp_path / "t.pt.trace.json"
    gain = written(path, on_device=False, queries=queries)["unfused_attention"].speedup
    low, expected, high = (5 / (1 + min(1 / rate, 4)) for rate in rates)
    assert gain.basis == "replay"
    assert gain.expected == pytest.approx(expected, rel=0.02)
    assert gain.low < low
    assert gain.high >= high


def test_on_a_device_the_rate_is_a_part_of_it(tmp_path):
    gain = written(tmp_path / "t.pt.trace.json", on_device=True, dtype="c10::Half")["unfused_attention"].speedup
    assert gain.basis == "replay"
    assert gain.expected == pytest.approx(5 / (1 + 1 / 0.65), rel=0.05)
    assert gain.low < gain.expected < gain.high


def test_in_single_precision_the_rate_is_a_part_of_the_vector_units(tmp_path):
    """The linear layers need 1 ms for 2e9 operations, which is less than 0.45 of the peak of 19.5e12 per second."""
    single = written(tmp_path / "t.pt.trace.json", on_device=True)["unfused_attention"].speedup
    assert single.expected == pytest.approx(5 / (1 + 1), rel=0.05)


def test_in_single_precision_attention_on_matrix_units_may_not_gain(tmp_path, monkeypatch):
    """Units of 1e12 operations per second need longer for the products than attention takes."""
    slow = Peaks({}, 1.0, 1000.0, "data sheet")
    monkeypatch.setattr(attention, "peaks_of", lambda _trace: slow)
    gain = written(tmp_path / "t.pt.trace.json", on_device=True)["unfused_attention"].speedup
    assert gain.expected < 5 / (1 + 2 / 0.55) * 1.05
    slower = Peaks({}, 0.1, 1000.0, "data sheet")
    monkeypatch.setattr(attention, "peaks_of", lambda _trace: slower)
    gain = written(tmp_path / "t.pt.trace.json", on_device=True)["unfused_attention"].speedup
    assert gain.expected == pytest.approx(1.0)


def test_without_shapes_nothing_is_predicted(tmp_path):
    gain = written(tmp_path / "t.pt.trace.json", on_device=True, shapes=False)["unfused_attention"].speedup
    assert gain.basis == "none"
    assert "record_shapes" in gain.because
