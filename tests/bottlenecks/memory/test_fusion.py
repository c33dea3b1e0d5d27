"""Tests loops over the items of a batch, pointwise chains, and optimizers that loop over parameters."""

import json
from pathlib import Path

import pytest

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.bottlenecks.launch.fixes import BATCHED_CALLS
from tb_bottleneck.bottlenecks.launch.operator_loops import idle_in_unbatched_calls, repeated_calls, unbatched_calls
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.replay.modified_graph import Estimate, unmodified_graph
from tb_bottleneck.replay.recorded_graph import RecordedGraph
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

ITEM = ["aten::select", "aten::unsqueeze", "aten::linear", "aten::relu", "aten::linear"]
LAYER = ["aten::layer_norm", "aten::linear", "aten::relu", "aten::linear"]
CELL = ["aten::select", "aten::unsqueeze", "aten::lstm_cell", "aten::linear"]
STEP_US, OPERATOR_US, KERNEL_US = 5_000, 50, 5


def looped(tmp_path, operators, calls, blocks=1):
    """Three steps of 5 ms that each do the operators `calls` times; each operator launches a kernel of 5 us."""
    events, number = [], 0
    row = {"ph": "X", "pid": 1, "tid": 1}
    for step in range(3):
        begin = step * STEP_US
        events.append(row | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": STEP_US - 1})
        for position, name in enumerate(operators * calls):
            number, at = number + 1, begin + position * OPERATOR_US
            link = {"correlation": number, "device": 0, "stream": 7, "grid": [blocks, 1, 1]}
            shapes = {"Input Dims": [[16, 64], [], []], "Input type": ["float", "Scalar", "Scalar"]}
            index = {**shapes, "Concrete Inputs": ["", "0", str(position)]} if name == "aten::select" else {}
            events.append(row | {"cat": "cpu_op", "name": name, "ts": at, "dur": OPERATOR_US - 10, "args": index})
            events.append(
                row | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 20, "dur": 5, "args": link}
            )
            kernel = {"cat": "kernel", "name": "ampere_sgemm_32x32_tn", "pid": 0, "tid": 7}
            events.append(row | kernel | {"ts": at + 28, "dur": KERNEL_US, "args": link})
    path = tmp_path / "looped.pt.trace.json"
    devices = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}]
    path.write_text(json.dumps({"deviceProperties": devices, "traceEvents": events}))
    return str(path)


def recording_of(path):
    trace = load(path)
    return Recording(trace, find_steps(trace))


def test_a_loop_over_items_is_found_in_each_step(tmp_path):
    recording = recording_of(looped(tmp_path, ITEM, 16))
    assert unbatched_calls(recording).value == 16
    assert repeated_calls(recording).first.sum() == len(recording.steps)
    assert idle_in_unbatched_calls(recording).value == pytest.approx(15 * 5 * 45 / STEP_US, rel=0.05)


def test_the_line_with_the_loop_is_named(tmp_path):
    """Another line calls small operators, too: its time is not the loop's."""
    path = Path(looped(tmp_path, [*ITEM * 12, *LAYER], 1))
    whole = json.loads(path.read_text())
    row = {"ph": "X", "cat": "python_function", "pid": 1, "tid": 1}
    loop, rest = 12 * len(ITEM) * OPERATOR_US, len(LAYER) * OPERATOR_US
    for begin in range(0, 3 * STEP_US, STEP_US):
        whole["traceEvents"] += [
            row | {"name": "train.py(9): for_each_item", "ts": begin, "dur": loop},
            row | {"name": "train.py(30): rest", "ts": begin + loop, "dur": rest},
        ]
    path.write_text(json.dumps(whole))
    where = {finding.cause: finding.where for finding in diagnose(str(path)).findings}
    assert {place.function for place in where["small_kernels"]} == {"for_each_item", "rest"}
    assert {place.function for place in where["unbatched_calls"]} == {"for_each_item"}


@pytest.mark.parametrize(
    ("operators", "calls"),
    [(LAYER, 16), (CELL, 16), (ITEM, 4), (["aten::select", "aten::unsqueeze"], 40)],
    ids=["layers of a model", "a recurrent network", "few calls", "no call of a model"],
)
def test_what_else_repeats_is_no_loop_over_items(tmp_path, operators, calls):
    path = looped(tmp_path, operators, calls)
    assert unbatched_calls(recording_of(path)).value == 0
    assert "unbatched_calls" not in {finding.cause for finding in diagnose(path).findings}


def test_the_loop_is_named_and_its_gain_simulated(tmp_path):
    """A step takes 0.25 ms for the first call and 1 ms after the loop, instead of 5 ms."""
    found = {finding.cause: finding for finding in diagnose(looped(tmp_path, ITEM, 16)).findings}
    assert found["unbatched_calls"].speedup.basis == "replay"
    assert found["unbatched_calls"].speedup.expected == pytest.approx(5 / 1.25, rel=0.15)
    assert found["unbatched_calls"].evidence[0].value == 16


def test_kernels_that_fill_the_device_keep_their_work(tmp_path):
    graphs = (
        unmodified_graph(RecordedGraph(recording_of(looped(tmp_path, ITEM, 16, blocks)))) for blocks in (1, 4_096)
    )
    small, large = (
        BATCHED_CALLS.apply(graph, Estimate.EXPECTED).items.length.sum() / graph.items.length.sum() for graph in graphs
    )
    assert small == pytest.approx((1 + 2 / 16) / 3), "the step before the window stays as it was recorded"
    assert large == 1


def test_values_read_one_by_one_are_named_on_the_cpu(tmp_path):
    def report(reads):
        """Three steps of 100 short operators on the CPU."""
        names = (["aten::item"] * reads + ["aten::gelu"] * 100)[:100]
        row, events = {"ph": "X", "pid": 1, "tid": 1}, []
        for step in range(3):
            begin = step * STEP_US
            mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step}"}
            events.append(row | mark | {"ts": begin, "dur": STEP_US - 1})
            for position, name in enumerate(names):
                events.append(row | {"cat": "cpu_op", "name": name, "ts": begin + position * OPERATOR_US, "dur": 2})
        path = tmp_path / f"reads{reads}.pt.trace.json"
        path.write_text(json.dumps({"deviceProperties": [], "traceEvents": events}))
        return diagnose(str(path))

    many, few = report(40), report(2)
    assert [found.findings[0].cause for found in (many, few)] == ["small_operators"] * 2
    assert "tolist" in many.findings[0].fix.code
    assert "40 calls of .item()" in many.findings[0].fix.code
    assert "tolist" not in few.findings[0].fix.code


RELU = "void at::native::vectorized_elementwise_kernel<4, at::native::launch_clamp_scalar>"
FUSED = "triton_poi_fused_add_relu_3"
FOREACH = "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>"


def trained(tmp_path, kernel, kernels_per_step, kernel_us, optimizer=True, operator="aten::add_", inside=1.0):
    """Four steps of 10 ms; the kernels are launched one after the other, inside Optimizer.step or before it. With the
    optimizer, the part `inside` is launched by its step."""
    events, number, pause = [], 0, 10_000 / kernels_per_step
    for step in range(4):
        begin = step * 10_000
        row = {"ph": "X", "pid": 1, "tid": 1}
        events.append(row | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": 10_000})
        name = "Optimizer.step#Adam.step" if optimizer else "forward"
        events.append(row | {"cat": "user_annotation", "name": name, "ts": begin, "dur": 9_999 * inside})
        for each in range(kernels_per_step):
            number, ts = number + 1, begin + each * pause
            link = {"correlation": number, "device": 0, "grid": [1024, 1, 1]}
            call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": ts, "dur": 3, "args": link}
            events.append(row | {"cat": "cpu_op", "name": operator, "ts": ts, "dur": pause * 0.9})
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
    assert found["optimizer_passes"].speedup.because.startswith("Not simulated: this requires recorded shapes")


@pytest.mark.parametrize(
    ("operator", "inside", "others"),
    [("aten::_foreach_mul_", 0.5, 0.48), ("aten::_foreach_mul_", 1.0, None), ("aten::add_", 0.5, None)],
    ids=["clipping with foreach", "the optimizer alone", "operators of the model"],
)
def test_clipping_and_averages_count_as_passes_over_the_parameters(tmp_path, operator, inside, others):
    found = trained(tmp_path, FOREACH, 20, 480, operator=operator, inside=inside)["optimizer_passes"]
    values = [each.value for each in found.evidence if each.label.startswith("Outside of the optimizer")]
    assert found.cost_share == pytest.approx(0.48 if others is None and inside < 1 else 0.96, abs=0.01)
    assert values == ([] if others is None else [pytest.approx(others, abs=0.01)])


def test_other_passes_beside_a_fused_optimizer_are_none_of_an_optimizer(tmp_path):
    found = trained(tmp_path, FOREACH, 20, 480, operator="aten::_foreach_mul_", optimizer=False)
    assert "optimizer_passes" not in found


def test_an_optimizer_that_launches_everything_is_the_only_finding(tmp_path):
    """Small kernels, of which 100 % are the optimizer's, were a second finding with a gain of 1.00 times."""
    found = trained(tmp_path, RELU, kernels_per_step=200, kernel_us=6)
    assert found["optimizer_for_loop"].evidence[0].value == 200
    assert found["optimizer_for_loop"].cost_share > 0.5
    assert "small_kernels" not in found


@pytest.mark.parametrize(("kernel", "optimizer"), [(FOREACH, True), (RELU, False)])
def test_foreach_kernels_and_launches_elsewhere_are_no_loop_of_the_optimizer(tmp_path, kernel, optimizer):
    found = trained(tmp_path, kernel, kernels_per_step=200, kernel_us=6, optimizer=optimizer)
    assert ("small_kernels" if optimizer else "scattered_updates") in found
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
        ("aten::lerp_", 2_500, True, ["optimizer_for_loop"]),
        ("aten::_fused_adam_", 2_500, True, ["small_operators"]),
        ("aten::lerp_", 2_500, False, ["scattered_updates"]),
    ],
)
def test_the_same_is_seen_in_the_operators_of_a_run_on_the_cpu(tmp_path, operator, operators, optimizer, named):
    path = tmp_path / "c.pt.trace.json"
    path.write_text(json.dumps(on_the_cpu(operator, operators, optimizer)))
    assert sorted(finding.cause for finding in diagnose(str(path)).findings) == sorted(named)


def test_a_third_of_the_calls_of_a_loop_over_tensors_remains_on_a_cpu(tmp_path):
    path = tmp_path / "c.pt.trace.json"
    path.write_text(json.dumps(on_the_cpu("aten::lerp_", 2_500, False)))
    [found] = diagnose(str(path)).findings
    assert found.speedup.expected == pytest.approx(1 / (1 - found.cost_share * (1 - 0.36)), rel=0.05)


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
    assert "small_operators" not in found, "a seventh of the step is not more than that of usual layers"
