"""Planted problems are found, with their place; healthy runs are not accused."""

import os
from pathlib import Path

import pytest
from helpers.memory_recordings import RecordedAllocator
from helpers.simulated_training_memory import SimulatedTraining

from tb_bottleneck.knowledge.catalogue import load as load_knowledge
from tb_bottleneck.knowledge.memory_texts import evidence_label, memory_advice, part_label
from tb_bottleneck.memory.categories import CATEGORIES
from tb_bottleneck.memory.finding import MemoryFinding
from tb_bottleneck.memory.findings import findings_of
from tb_bottleneck.memory.trace_memory import TraceMemory, trace_memory
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import Trace, load

GPU_WORK = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 100, "dur": 5, "args": {"device": 0}}


def found_in(trace: Trace) -> dict[str, MemoryFinding]:
    memory, steps = trace_memory(trace), find_steps(trace)
    assert isinstance(memory, TraceMemory), memory
    return {finding.cause: finding for finding in findings_of(memory, steps)}


def found(allocator: RecordedAllocator, *, device: bool = False, **header) -> dict[str, MemoryFinding]:
    if device:
        allocator.events.append(GPU_WORK)
        # A device of unknown size: on one of 80 GB, the tensors of these trainings would be too small to matter.
        header.setdefault("deviceProperties", [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}])
    return found_in(allocator.trace(**header))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cpu", [False, True])
def test_a_healthy_training_has_no_warning(seed, cpu):
    allocator = SimulatedTraining(steps=7, seed=seed, cpu=cpu, layers=6).allocator
    assert not [it for it in found(allocator, device=not cpu).values() if it.severity != "info"]


def test_memory_that_each_step_leaves_is_found():
    finding = found(SimulatedTraining(steps=7, leak=100_000, cpu=True).allocator)["growing_memory"]
    values = {value.name: value.value for value in finding.evidence}
    assert values["per_step"] == 100_000
    assert finding.bytes == 6 * 100_000
    assert "aten::linear" in values["at"]


@pytest.mark.parametrize(("leak", "severity"), [(40 << 20, "critical"), (2048, "warning")])
def test_growth_that_fills_the_device_within_an_epoch_is_critical(leak, severity):
    properties = [{"id": 0, "name": "A100", "totalGlobalMem": 85899345920}]
    simulated = SimulatedTraining(steps=7, leak=leak, layers=2)
    causes = found(simulated.allocator, device=True, deviceProperties=properties)
    (finding,) = (causes[name] for name in ("growing_memory", "retained_graph") if name in causes)
    values = {value.name: value.value for value in finding.evidence}
    assert (values["steps_left"] < 10_000) == (severity == "critical")
    assert finding.severity == severity


def test_a_few_bytes_per_step_are_no_growth():
    assert "growing_memory" not in found(SimulatedTraining(steps=7, leak=512, cpu=True, batch=8).allocator)


def test_activations_that_each_step_leaves_are_a_kept_graph():
    causes = found(SimulatedTraining(steps=7, leak=1 << 20, cpu=True).allocator)
    assert "retained_graph" in causes
    assert "growing_memory" not in causes


def test_three_steps_are_too_few_for_growth():
    assert "growing_memory" not in found(SimulatedTraining(steps=3, leak=100_000, cpu=True).allocator)


@pytest.mark.parametrize(("capacity", "fires"), [(20 << 20, False), (11 << 19, True)])
def test_a_peak_near_the_capacity_is_found(capacity, fires):
    allocator = SimulatedTraining().allocator
    properties = [{"id": 0, "name": "A100", "totalGlobalMem": capacity}]
    assert ("near_limit" in found(allocator, device=True, deviceProperties=properties)) == fires


def test_a_dominating_tensor_is_named():
    simulated = SimulatedTraining(cpu=True, layers=6)
    simulated.allocator.span("aten::log_softmax", 300.5, 301.5)
    block = simulated.allocator.alloc(3310.0, 40 << 20)
    simulated.allocator.span("aten::_log_softmax", 3309, 3311)
    simulated.allocator.free(3500.0, block)
    _renumber(simulated.allocator)
    finding = found(simulated.allocator)["tensor_dominates"]
    assert finding.bytes == 40 << 20
    assert any("aten::_log_softmax" in str(value.value) for value in finding.evidence)


@pytest.mark.parametrize(("state", "dominates"), [(4, True), (1, False)])
def test_a_dominating_optimizer_state_is_found(state, dominates, monkeypatch):
    monkeypatch.setattr("helpers.simulated_training_memory.GRADIENT_SIZES", (4 << 20, 4 << 20, 4 << 20))
    simulated = SimulatedTraining(state=state, built=True, layers=2)
    assert ("optimizer_dominates" in found(simulated.allocator, device=True)) == dominates


def test_zeroed_gradients_are_found():
    allocator = RecordedAllocator(0, -1)
    for step in range(4):
        at = 1000.0 * step
        allocator.span(f"ProfilerStep#{step}", at, at + 999, "user_annotation")
        allocator.span("Optimizer.zero_grad#SGD.zero_grad", at + 1, at + 20, "user_annotation")
        allocator.span("aten::zero_", at + 2, at + 5)
        allocator.span("aten::linear", at + 30, at + 50)
        block = allocator.alloc(at + 31, 4096)
        allocator.span("autograd::engine::evaluate_function: AddmmBackward0", at + 100, at + 150)
        allocator.free(at + 120, block)
    assert found(allocator)["gradients_kept"].evidence[0].value == 1.0


@pytest.mark.parametrize(("kept", "fires"), [(True, True), (False, False)])
def test_a_pass_that_keeps_its_tensors_without_a_backward_pass_is_found(kept, fires):
    allocator = RecordedAllocator(0, -1)
    blocks = []
    for layer in range(40):
        at = 100.0 * layer
        allocator.span("aten::linear", at, at + 50)
        blocks.append(allocator.alloc(at + 10, 1 << 16))
        if not kept and layer:
            allocator.free(at + 60, blocks[layer - 1])
    for layer, block in enumerate(blocks if kept else blocks[-1:]):
        allocator.free(4100.0 + layer, block)
    assert ("evaluation_without_no_grad" in found(allocator)) == fires


def test_reserved_memory_that_falls_and_rises_is_found():
    allocator = RecordedAllocator(allocated=1 << 20, reserved=64 << 20)
    allocator.span("aten::mm", 0, 900)
    for number in range(4):
        block = allocator.alloc(100.0 * number + 1, 8 << 20)
        allocator.free(100.0 * number + 50, block)
        allocator.events[-1]["args"]["Total Reserved"] = 32 << 20
    assert found(allocator, device=True)["cache_flushes"].evidence[0].value == 3


@pytest.mark.parametrize(("kind", "fires"), [("float", True), ("c10::BFloat16", False)])
def test_activations_in_32_bits_are_found_on_a_device(kind, fires):
    simulated = SimulatedTraining(batch=16)
    dims = {"Input Dims": [[4, 4], [4, 4]], "Input type": [kind, kind]}
    simulated.allocator.span("aten::mm", 3110, 3111, **dims)
    assert ("fp32_memory" in found(simulated.allocator, device=True)) == fires


def test_every_text_has_a_source_and_every_part_a_label():
    for cause in load_knowledge("memory.toml")["finding"]:
        advice = memory_advice(cause)
        assert advice.title
        assert advice.summary.endswith(".")
        assert advice.code
        assert advice.confirm.endswith(".")
        assert bool(advice.action) == bool(advice.headline.template)
        assert advice.headline.template.startswith(f"{advice.action}: "[: len(advice.action) * 3])
    assert [part_label(kind.value) for kind in CATEGORIES]
    assert evidence_label("peak") == "Peak"


FOLDER = os.environ.get("TB_BOTTLENECK_TRACES")
KEEPS_ACTIVATIONS = {"ptf_bs16_steady": True, "ptf_cpu_only_eval": True, "h100_owlv2": False, "h100_qwen05b": False}
"""True for public recordings of evaluations that record gradients."""


@pytest.mark.skipif(not FOLDER, reason="TB_BOTTLENECK_TRACES names no folder with public traces")
@pytest.mark.parametrize("name", KEEPS_ACTIVATIONS)
def test_real_evaluations_are_told_apart(name):
    causes = found_in(load(str(Path(FOLDER) / f"{name}.json.gz")))
    assert ("evaluation_without_no_grad" in causes) == KEEPS_ACTIVATIONS[name]


def _renumber(allocator: RecordedAllocator) -> None:
    """Sets the totals again after events were added in between."""
    total = 0
    for event in sorted(allocator.events, key=lambda event: event["ts"]):
        if event["name"] == "[memory]":
            total += event["args"]["Bytes"]
            event["args"]["Total Allocated"] = total


@pytest.mark.parametrize(("capacity", "named"), [(1 << 30, False), (20 << 20, True)])
def test_what_takes_a_small_part_of_the_memory_does_not_matter(capacity, named, monkeypatch):
    monkeypatch.setattr("helpers.simulated_training_memory.GRADIENT_SIZES", (4 << 20, 4 << 20, 4 << 20))
    simulated = SimulatedTraining(state=4, built=True, layers=2)
    properties = [{"id": 0, "name": "A100", "totalGlobalMem": capacity * 8}]
    assert ("optimizer_dominates" in found(simulated.allocator, device=True, deviceProperties=properties)) == named
