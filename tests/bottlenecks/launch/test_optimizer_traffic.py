"""An optimizer of foreach operators that bandwidth limits is told to be fused, and a fused one is not."""

import json

import pytest

from tb_bottleneck.diagnosis.trace import diagnose

ADAMW = ["mul_", "lerp_", "mul_", "addcmul_", "sqrt", "div_", "add_", "addcdiv_"]
ACCESSES = {"mul_": 2, "lerp_": 3, "addcmul_": 3, "sqrt": 2, "div_": 2, "add_": 2, "addcdiv_": 4}
MOMENTUM = ["mul_", "add_", "add_"]
PRODUCT_US, PASS_US = 3_000, 250
FOREACH = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOp>"
FUSED = "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<4>, X>"


def recorded(tmp_path, optimizer, operators, kernel=FOREACH, passes=None):
    """Writes three steps: 3 ms of a product, then the optimizer, whose kernels take 250 us per access. The host waits
    for them."""
    events, number = [], 0
    row = {"ph": "X", "pid": 1, "tid": 1}
    work = [("aten::mm", "ampere_sgemm_128x64_nn", PRODUCT_US)]
    work += [(name, kernel, PASS_US * (passes or {}).get(name, 8)) for name in operators]
    length = sum(took for *_, took in work) + 100
    for step in range(3):
        begin, device_at = step * length, step * length + 60
        mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": length - 1}
        step_of = {"cat": "user_annotation", "name": f"Optimizer.step#{optimizer}.step", "ts": begin + 100, "dur": 900}
        events += [row | mark, row | step_of]
        for at, (name, device, took) in enumerate(work):
            number += 1
            link = {"correlation": number, "device": 0, "stream": 7, "grid": [2048, 1, 1]}
            ts = begin + 40 * at + (60 if at else 20)
            events.append(row | {"cat": "cpu_op", "name": name, "ts": ts, "dur": 30})
            events.append(
                row | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts + 10, "dur": 5, "args": link}
            )
            shown = {"cat": "kernel", "name": device, "pid": 0, "tid": 7, "ts": device_at, "dur": took, "args": link}
            events.append(row | shown)
            device_at += took
        wait = {
            "cat": "cuda_runtime",
            "name": "cudaDeviceSynchronize",
            "ts": begin + 1_050,
            "dur": device_at - begin - 1_050,
        }
        events.append(row | wait)
    path = tmp_path / "t.pt.trace.json"
    devices = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}]
    path.write_text(json.dumps({"deviceProperties": devices, "traceEvents": events}))
    return {finding.cause: finding for finding in diagnose(str(path)).findings}


@pytest.mark.parametrize(
    ("optimizer", "operators", "accesses", "fused"),
    [("AdamW", ADAMW, ACCESSES, 7), ("SGD", MOMENTUM, {"mul_": 2, "add_": 3}, 5)],
)
def test_the_gain_is_that_of_the_traffic(tmp_path, optimizer, operators, accesses, fused):
    names = [f"aten::_foreach_{name}" for name in operators]
    passes = {f"aten::_foreach_{name}": number for name, number in accesses.items()}
    found = recorded(tmp_path, optimizer, names, passes=passes)["optimizer_passes"]
    total = sum(accesses[name] for name in operators)
    step = PRODUCT_US + PASS_US * total
    assert found.cost_share == pytest.approx(PASS_US * total / step, abs=0.03)
    assert found.speedup.expected == pytest.approx(step / (step - PASS_US * (total - fused)), rel=0.1)
    assert "fused=True" in found.fix.code


@pytest.mark.parametrize(
    ("optimizer", "operators", "kernel"),
    [("AdamW", ["aten::_fused_adamw_"], FUSED), ("SGD", ["aten::_foreach_add_"], FOREACH)],
    ids=["fused", "one pass"],
)
def test_nothing_is_gained_without_several_passes(tmp_path, optimizer, operators, kernel):
    found = recorded(tmp_path, optimizer, operators, kernel).get("optimizer_passes")
    assert found is None or found.speedup.expected < 1.01
