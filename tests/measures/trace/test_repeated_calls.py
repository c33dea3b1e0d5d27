"""Loops that call the same small work for one item after the other; what else repeats is not such a loop."""

import json
from pathlib import Path

import pytest

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.measures.trace.fusion import idle_in_unbatched_calls, repeated_calls, unbatched_calls
from tb_bottleneck.replay.modified_graph import Estimate, RecordedGraph, unmodified_graph
from tb_bottleneck.replay.scenarios.launches import BATCHED_CALLS
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
            events.append(row | {"cat": "cpu_op", "name": name, "ts": at, "dur": OPERATOR_US - 10})
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
        names = (["aten::item"] * reads + ["aten::add"] * 100)[:100]
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
