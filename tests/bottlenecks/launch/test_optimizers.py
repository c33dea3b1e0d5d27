"""A fused optimizer takes the host's time of a loop away, and reads and writes each parameter once."""

import json

import pytest
from helpers.drawn_graphs import after_fix, columns, drawn_graph
from helpers.simulated_graphs import simulated_graph
from simulate.workload import launch_bound

from tb_bottleneck.bottlenecks.launch.fixes import FUSED_OPTIMIZER, OF_MEDIAN_ON_CPU, PER_TRAFFIC_ON_CPU
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.replay.modified_graph import Estimate

SIZE = 1 << 20
ADAMW = (
    ("mul_", 1), ("lerp_", 2), ("mul_", 1), ("addcmul_", 3), ("sqrt", 1), ("div", 1), ("add_", 1), ("addcdiv_", 3),
)  # fmt: skip
MOMENTUM = (("mul_", 1), ("add_", 2), ("add_", 2))


def written(path, optimizer, operators, size=SIZE, on_device=False, shapes=True, steps=5):
    """Writes steps of a product of 4 ms, and an optimizer whose operators take 8 ms together, without pauses."""
    events, at = [], 0
    row = {"ph": "X", "pid": 1, "tid": 1}
    for step in range(steps):
        begin = at
        each = 8000 // len(operators)
        calls = [
            ("mm", [[1000, 1000], [1000, 1000]], 4000),
            *((name, [[size]] * count, each) for name, count in operators),
        ]
        for number, (name, dims, length) in enumerate(calls):
            host = begin + 100 * number if on_device else at
            args = {"Input Dims": dims, "Input type": ["float"] * len(dims)} if shapes else {}
            own = {"ts": host, "dur": 90 if on_device else length, "args": args}
            events.append(row | {"cat": "cpu_op", "name": f"aten::{name}"} | own)
            if on_device:
                link = {"correlation": len(events), "device": 0, "stream": 7, "grid": [9999, 1, 1]}
                kernel = "sm80_xmma_gemm_f32" if name == "mm" else "vectorized_elementwise_kernel<4>"
                launch = {"name": "cudaLaunchKernel", "ts": host + 1, "dur": 3, "args": link}
                events.append(row | {"cat": "cuda_runtime"} | launch)
                work = {"name": kernel, "ts": at + 10, "dur": length, "args": link}
                events.append(row | {"cat": "kernel", "pid": 0, "tid": 7} | work)
            at += length
        first = begin + (100 if on_device else 4000)
        update = {"name": f"Optimizer.step#{optimizer}.step", "ts": first, "dur": (900 if on_device else at - first)}
        events.append(row | {"cat": "user_annotation"} | update)
        if on_device:
            wait = {"name": "cudaDeviceSynchronize", "ts": begin + 1100, "dur": at + 10 - begin - 1100}
            events.append(row | {"cat": "cuda_runtime"} | wait)
            at += 50
        events.append(row | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": begin, "dur": at - begin})
    properties = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}] if on_device else []
    path.write_text(json.dumps({"traceEvents": events, "deviceProperties": properties, "record_shapes": 1}))
    return {finding.cause: finding for finding in diagnose(str(path)).findings}


@pytest.mark.parametrize(
    ("optimizer", "operators", "passes"),
    [
        ("AdamW", ADAMW, 7 / 21),
        ("Adam", ADAMW[1:], 7 / 19),
        ("SGD", MOMENTUM, 5 / 8),
        ("SGD", (("add", 2), ("add_", 2)), 3 / 6),
        ("SGD", (*MOMENTUM, ("add_", 2), ("add_", 2)), (3 * 3 + 2) / 14),
    ],
)
@pytest.mark.parametrize("shapes", [True, False])
def test_on_the_cpu_the_optimizer_shrinks_as_its_traffic_does(tmp_path, optimizer, operators, passes, shapes):
    gain = written(tmp_path / "t.pt.trace.json", optimizer, operators, shapes=shapes)["optimizer_passes"].speedup
    if not shapes:
        assert gain.basis != "replay"
        return
    left = {estimate: min(passes * PER_TRAFFIC_ON_CPU[-1] * OF_MEDIAN_ON_CPU[estimate], 1.0) for estimate in Estimate}
    assert gain.expected == pytest.approx(12 / (4 + 8 * left[Estimate.EXPECTED]), rel=0.02)
    assert gain.low <= 12 / (4 + 8 * left[Estimate.LOW]) * 1.001
    assert gain.high >= 12 / (4 + 8 * left[Estimate.HIGH]) * 0.999


def test_calls_for_small_parameters_gain_more(tmp_path):
    """There, the calls are what is saved, besides the traffic."""
    gains = [
        written(tmp_path / f"{size}.pt.trace.json", "AdamW", ADAMW, size)["optimizer_passes"].speedup.expected
        for size in (100, 1 << 13, SIZE)
    ]
    assert gains == pytest.approx([12 / (4 + 8 / 3 * ratio) for ratio in (0.44, 0.64, 0.87)], rel=0.02)


def test_on_a_device_its_kernels_shrink(tmp_path):
    gain = written(tmp_path / "t.pt.trace.json", "AdamW", ADAMW, on_device=True)["optimizer_passes"].speedup
    assert gain.basis == "replay"
    assert gain.expected == pytest.approx(12 / (4 + 8 / 3), rel=0.03)


def test_an_optimizer_that_updates_many_parameters_at_once_is_not_simulated(tmp_path):
    operators = (*ADAMW, ("_fused_adamw_", 3))
    found = written(tmp_path / "t.pt.trace.json", "AdamW", operators)
    assert all(finding.speedup.basis != "replay" for cause, finding in found.items() if "optimizer" in cause)


def test_an_operator_that_another_one_calls_is_not_counted(tmp_path):
    path = tmp_path / "t.pt.trace.json"
    alone = written(path, "AdamW", ADAMW)["optimizer_passes"].speedup.expected
    trace = json.loads(path.read_text())
    calls = [event for event in trace["traceEvents"] if event["name"] == "aten::mul_"]
    trace["traceEvents"] += [
        {**call, "name": "aten::mul", "ts": call["ts"] + 1, "dur": call["dur"] - 2} for call in calls
    ]
    path.write_text(json.dumps(trace))
    found = {finding.cause: finding for finding in diagnose(str(path)).findings}
    assert found["optimizer_passes"].speedup.expected == pytest.approx(alone, rel=0.01)


def test_an_optimizer_without_a_fused_implementation_is_not_simulated(tmp_path):
    gain = written(tmp_path / "t.pt.trace.json", "RMSprop", ADAMW[3:])["optimizer_passes"].speedup
    assert gain.basis != "replay"
    assert "Adam, AdamW, SGD or Adagrad" in gain.because


def test_the_optimizers_dispatching_goes_and_its_kernels_stay():
    workload = launch_bound(5).but(layers=6, optimizer_kernels=150, loader="")
    graph = simulated_graph(workload)
    windows = {estimate: FUSED_OPTIMIZER.apply(graph, estimate).window() for estimate in Estimate}
    assert windows[Estimate.HIGH] <= windows[Estimate.EXPECTED] < windows[Estimate.LOW] < graph.window()
    assert FUSED_OPTIMIZER.apply(graph, Estimate.EXPECTED).items.length.sum() == graph.items.length.sum()


def test_a_training_without_an_optimizer_row_gains_nothing():
    graph = drawn_graph("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  |.........|.........
        gpu     .###.......###......
    """)
    assert after_fix(graph, FUSED_OPTIMIZER) == columns(graph)
