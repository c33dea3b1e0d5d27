"""Work that fewer kernels could do: pointwise chains, and optimizers that loop over parameters."""

import json

import pytest

from tb_bottleneck.diagnosis.trace import diagnose

RELU = "void at::native::vectorized_elementwise_kernel<4, at::native::launch_clamp_scalar>"
FUSED = "triton_poi_fused_add_relu_3"
FOREACH = "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>"


def trained(tmp_path, kernel, kernels_per_step, kernel_us, optimizer=True):
    """Four steps of 10 ms; the kernels are launched one after the other, inside Optimizer.step or before it."""
    events, number, pause = [], 0, 10_000 / kernels_per_step
    for step in range(4):
        begin = step * 10_000
        row = {"ph": "X", "pid": 1, "tid": 1}
        events.append(row | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": 10_000})
        name = "Optimizer.step#Adam.step" if optimizer else "forward"
        events.append(row | {"cat": "user_annotation", "name": name, "ts": begin, "dur": 9_999})
        for each in range(kernels_per_step):
            number, ts = number + 1, begin + each * pause
            link = {"correlation": number, "device": 0, "grid": [1024, 1, 1]}
            call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts, "dur": 3, "args": link}
            events.append(row | {"cat": "cpu_op", "name": "aten::add_", "ts": ts, "dur": pause * 0.9})
            events.append(row | call)
            kernel_row = {"cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": ts + 8, "dur": kernel_us}
            events.append(row | kernel_row | {"args": link})
    path = tmp_path / "t.pt.trace.json"
    devices = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}]
    path.write_text(json.dumps({"deviceProperties": devices, "traceEvents": events}))
    return {finding.cause: finding for finding in diagnose(str(path)).findings}


def test_pointwise_kernels_that_fill_the_step_are_worth_fusing(tmp_path):
    found = trained(tmp_path, RELU, kernels_per_step=20, kernel_us=480, optimizer=False)
    assert found["unfused_pointwise"].cost_share == pytest.approx(0.96, abs=0.01)
    assert found["unfused_pointwise"].evidence[1].value == 20
    assert "unfused_pointwise" not in trained(tmp_path, FUSED, kernels_per_step=20, kernel_us=480, optimizer=False)


def test_what_the_optimizer_does_is_not_fused_by_compiling_the_model(tmp_path):
    found = trained(tmp_path, RELU, kernels_per_step=20, kernel_us=480)
    assert found["optimizer_passes"].regime == "memory"
    assert found["optimizer_passes"].cost_share == pytest.approx(0.96, abs=0.01)
    assert "unfused_pointwise" not in found
    assert found["optimizer_passes"].speedup.because.startswith("Not simulated: the number of passes")


def test_an_optimizer_that_launches_everything_is_the_only_finding(tmp_path):
    """Small kernels, of which 100 % are the optimizer's, were a second finding with a gain of 1.00 times."""
    found = trained(tmp_path, RELU, kernels_per_step=200, kernel_us=6)
    assert found["optimizer_for_loop"].evidence[0].value == 200
    assert found["optimizer_for_loop"].cost_share > 0.5
    assert "small_kernels" not in found


@pytest.mark.parametrize(("kernel", "optimizer"), [(FOREACH, True), (RELU, False)])
def test_foreach_kernels_and_launches_elsewhere_are_no_loop_of_the_optimizer(tmp_path, kernel, optimizer):
    found = trained(tmp_path, kernel, kernels_per_step=200, kernel_us=6, optimizer=optimizer)
    assert "small_kernels" in found
    assert "optimizer_for_loop" not in found


def on_the_cpu(operator, operators_per_step, optimizer):
    """Four steps of 10 ms on the CPU, filled with one operator, inside Optimizer.step or before it."""
    events, each = [], 10_000 / operators_per_step
    for step in range(4):
        row = {"ph": "X", "pid": 1, "tid": 1, "ts": step * 10_000}
        events.append(row | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "dur": 10_000})
        name = "Optimizer.step#Adam.step" if optimizer else "forward"
        events.append(row | {"cat": "user_annotation", "name": name, "dur": 9_999})
        for number in range(operators_per_step):
            at = {"ts": step * 10_000 + number * each, "dur": each * 0.95}
            events.append(row | at | {"cat": "cpu_op", "name": operator})
    return {"traceEvents": events}


@pytest.mark.parametrize(
    ("operator", "operators", "optimizer", "named"),
    [
        ("aten::gelu", 40, False, ["unfused_pointwise"]),
        ("aten::addmm", 40, False, []),
        ("aten::cat", 40, False, []),
        ("aten::lerp_", 2_500, True, ["small_operators", "optimizer_for_loop"]),
        ("aten::_fused_adam_", 2_500, True, ["small_operators"]),
        ("aten::lerp_", 2_500, False, ["small_operators"]),
    ],
)
def test_the_same_is_seen_in_the_operators_of_a_run_on_the_cpu(tmp_path, operator, operators, optimizer, named):
    path = tmp_path / "c.pt.trace.json"
    path.write_text(json.dumps(on_the_cpu(operator, operators, optimizer)))
    assert sorted(finding.cause for finding in diagnose(str(path)).findings) == sorted(named)


def test_the_optimizers_cost_is_the_time_of_its_rows_and_not_their_number(tmp_path):
    """Per step, 300 operators of 2 us in 1 ms, then Optimizer.step with 200 of 4 us in 4 ms and one of 2 ms."""
    events = []
    for step in range(4):
        begin, row = step * 7_000, {"ph": "X", "pid": 1, "tid": 1, "cat": "cpu_op"}
        mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": 7_000}
        optimizer = {"cat": "user_annotation", "name": "Optimizer.step#Adam.step", "ts": begin + 1_000, "dur": 6_000}
        events += [row | mark, row | optimizer]
        events += [row | {"name": "aten::relu", "ts": begin + number * 10 / 3, "dur": 2} for number in range(300)]
        events += [row | {"name": "aten::lerp_", "ts": begin + 1_000 + number * 20, "dur": 4} for number in range(200)]
        events += [row | {"name": "aten::add_", "ts": begin + 5_000, "dur": 2_000}]
    path = tmp_path / "t.pt.trace.json"
    path.write_text(json.dumps({"deviceProperties": [], "traceEvents": events}))
    found = {finding.cause: finding for finding in diagnose(str(path)).findings}
    assert next(iter(found)) == "optimizer_for_loop"
    assert found["optimizer_for_loop"].cost_share == pytest.approx(6 / 7, abs=0.01)
    assert found["small_operators"].cost_share == pytest.approx(1 / 7, abs=0.01)
