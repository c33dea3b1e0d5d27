"""Equal forward and backward passes in a step are portions of one batch; other passes are not."""

import json
from pathlib import Path

import pytest

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Missing
from tb_bottleneck.bottlenecks.launch.micro_batches import (
    BACKWARD,
    idle_in_micro_batches,
    micro_batches,
    micro_batches_per_step,
)
from tb_bottleneck.bottlenecks.underfilled.fixes import LARGER_BATCH
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.replay.modified_graph import Estimate, unmodified_graph
from tb_bottleneck.replay.recorded_graph import RecordedGraph
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

PASS = ["aten::linear", "aten::relu", "aten::linear", "aten::mse_loss", BACKWARD]
OTHER = ["aten::conv2d", "aten::relu", "aten::linear", "aten::mse_loss", BACKWARD]
OPTIMIZER = ["aten::_foreach_add_"]
STEP_US, OPERATOR_US, BACKWARD_US, KERNEL_US = 5_000, 50, 200, 5


@pytest.fixture
def recorded(tmp_path):
    """Returns a function that writes a trace of three steps, each with the given operators. Each operator launches a
    kernel of 5 us; a backward pass runs in another thread, while the main thread waits for it."""

    def write(operators):
        events, number = [], 0
        row = {"ph": "X", "pid": 1, "tid": 1}
        for step in range(3):
            at = step * STEP_US
            mark = {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at, "dur": STEP_US - 1}
            events.append(row | mark)
            for name in operators:
                backward = name == BACKWARD
                called = [(name, 1, at)] + [("aten::mm", 2, at + 50 * n) for n in (1, 2, 3) if backward]
                for called_name, thread, begin in called:
                    number += 1
                    link = {"correlation": number, "device": 0, "stream": 7, "grid": [1, 1, 1]}
                    own = row | {"tid": thread}
                    events.append(own | {"cat": "cpu_op", "name": called_name, "ts": begin, "dur": 30})
                    launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": begin + 10, "dur": 5}
                    events.append(own | launch | {"args": link})
                    kernel = {
                        "cat": "kernel",
                        "name": "sgemm_tn",
                        "pid": 0,
                        "tid": 7,
                        "ts": begin + 18,
                        "dur": KERNEL_US,
                    }
                    events.append(row | kernel | {"args": link})
                at += BACKWARD_US if backward else OPERATOR_US
        path = tmp_path / "trace.json"
        devices = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}]
        path.write_text(json.dumps({"deviceProperties": devices, "traceEvents": events}))
        return str(path)

    return write


def recording_of(path):
    trace = load(path)
    return Recording(trace, find_steps(trace))


def test_equal_passes_are_portions_of_one_batch(recorded):
    recording = recording_of(recorded([*PASS * 8, *OPTIMIZER]))
    assert micro_batches_per_step(recording).value == 8
    found = micro_batches(recording)
    assert found.first.tolist() == [True, *[False] * 7] * len(recording.steps)
    assert (found.end - found.begin).tolist() == [400_000] * len(found.first), "a forward and its backward pass"
    assert idle_in_micro_batches(recording).value == pytest.approx(7 * (400 - 7 * KERNEL_US) / STEP_US, rel=0.05)


@pytest.mark.parametrize(
    "operators",
    [
        [*PASS, *OPTIMIZER],
        [*PASS, *OTHER, *OPTIMIZER],
        [*OTHER, *PASS, *PASS, *OPTIMIZER],
        [BACKWARD, BACKWARD, BACKWARD, *OPTIMIZER],
        OPTIMIZER * 9,
    ],
    ids=["one pass", "two models", "a model before", "no operators", "no backward pass"],
)
def test_other_passes_are_not(recorded, operators):
    assert isinstance(micro_batches_per_step(recording_of(recorded(operators))), Missing)


def test_the_whole_batch_in_one_pass_gains_nearly_all_other_passes(recorded):
    report = diagnose(recorded([*PASS * 8, *OPTIMIZER]))
    lead = report.findings[0]
    assert (lead.cause, lead.regime) == ("small_batch", "launch")
    assert report.plan[0].cause == "small_batch"
    assert lead.speedup.expected > 2
    assert "small_kernels" not in [each.cause for each in report.findings], "few launches remain"


def on_cpu(tmp_path, passes, indices, rows=0):
    """Writes a trace of a CPU run with small operators. Each pass slices the batch at an index, and adds to the
    gradients of the pass before. A product of so many `rows` takes most of its time."""
    product = {"dur": 39 if rows else 5, "args": {"Input Dims": [[rows, 64], [64, 64]]} if rows else {}}
    events, row = [], {"ph": "X", "pid": 1, "tid": 1}
    for step in range(4):
        at = step * 7_020
        events.append(row | {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at, "dur": 7_019})
        at += 10
        for number in range(passes):
            node = "autograd::engine::evaluate_function: " + ("AddmmBackward0" if number else "TBackward0")
            begin = [[], str(number), str(number * indices)]
            for name, concrete in [("aten::slice", begin), *((name, []) for name in PASS), (node, [])]:
                args = {"Input Dims": [[64, 8]], "Input type": ["float"], "Concrete Inputs": concrete}
                events.append(row | {"cat": "cpu_op", "name": name, "ts": at, "dur": 40, "args": args})
                events.append(row | {"cat": "cpu_op", "name": "aten::mm", "ts": at + (1 if rows else 30), **product})
                at += 50
    path = tmp_path / "cpu.json"
    path.write_text(json.dumps({"deviceProperties": [], "traceEvents": events}))
    return str(path)


@pytest.mark.parametrize("indices", [0, 16])
def test_slices_of_a_batch_on_a_cpu_are_portions_of_it(tmp_path, indices):
    path = on_cpu(tmp_path, 20, indices)
    assert micro_batches_per_step(recording_of(path)).value == 20
    lead = diagnose(path).findings[0]
    assert lead.cause == "small_batch"
    assert 1.1 < lead.speedup.low < lead.speedup.expected < lead.speedup.high
    assert "20 portions" in diagnose(path).verdict.headline


def test_products_of_few_rows_take_the_time_of_their_weights(tmp_path):
    """One product for all rows takes hardly longer than for one row, and as long as all of them for many rows."""
    few, many = (
        LARGER_BATCH.apply(unmodified_graph(RecordedGraph(recording_of(on_cpu(tmp_path, 20, 16, rows)))), estimate)
        for rows, estimate in ((1, Estimate.EXPECTED), (60, Estimate.EXPECTED))
    )
    assert many.window() > 4 * few.window()


def test_one_pass_on_a_cpu_has_no_portions(tmp_path):
    path = on_cpu(tmp_path, 1, 0)
    assert isinstance(micro_batches_per_step(recording_of(path)), Missing)


@pytest.mark.parametrize(("torch", "first"), [(1e9, "small_batch"), (39e9, "small_kernels")])
def test_a_single_pass_gets_more_samples_where_memory_is_free(recorded, torch, first):
    path = Path(recorded([*["aten::linear", "aten::relu"] * 45, BACKWARD, *OPTIMIZER]))
    trace = json.loads(path.read_text())
    trace["deviceProperties"][0]["totalGlobalMem"] = int(80e9)
    trace["tb_bottleneck"] = {"context": {"device_memory_bytes": [torch + 1e9, torch]}}
    path.write_text(json.dumps(trace))
    report = diagnose(str(path))
    assert report.findings[0].cause == first
    assert ("batch_size=16 * previous" in report.findings[0].fix.code) == (first == "small_batch")
    assert report.verdict.headline.startswith("The GPU is idle")
