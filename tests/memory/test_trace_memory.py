"""The account of a simulated allocator has the bytes that the simulation put there."""

import os
from pathlib import Path

import pytest
from helpers.memory_recordings import RecordedAllocator
from helpers.simulated_training_memory import SimulatedTraining

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.memory.trace_memory import TraceMemory, trace_memory
from tb_bottleneck.trace.trace import load

GPU_WORK = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 100, "dur": 5}


def memory_of(simulated: SimulatedTraining, **header) -> TraceMemory:
    if simulated.allocator._device["Device Type"]:
        simulated.allocator.events.append({**GPU_WORK, "args": {"device": 0, "stream": 7, "correlation": 1}})
    memory = trace_memory(simulated.allocator.trace(**header))
    assert isinstance(memory, TraceMemory), memory
    return memory


def told(memory: TraceMemory) -> dict[str, int]:
    return {category.value: size for category, size in memory.account.rows}


@pytest.mark.parametrize("built", [False, True])
@pytest.mark.parametrize("state", [0, 1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_the_categories_at_the_peak_are_those_of_the_simulation(built, state, seed):
    optimizer = {0: "SGD", 1: "Adagrad", 2: "AdamW"}[state]
    simulated = SimulatedTraining(seed=seed, built=built, state=state, optimizer=optimizer)
    memory = memory_of(simulated)
    truth = {category: size for category, size in simulated.peak().items() if size}
    account = told(memory)
    assert {name: account.get(name, 0) for name in truth} == truth
    assert memory.account.peak == sum(truth.values()) == memory.account.reserved


def test_the_bytes_in_use_are_those_of_the_allocator():
    memory = memory_of(SimulatedTraining())
    assert (memory.in_use == memory.events.allocated).all()


def test_memory_from_before_a_recording_of_the_host_is_estimated():
    simulated = SimulatedTraining(cpu=True)
    memory = memory_of(simulated)
    parameters = sum(simulated.parameters)
    assert told(memory)["parameters"] == parameters
    assert told(memory)["optimizer"] == 2 * parameters
    assert memory.account.estimated == 3 * parameters
    assert memory.account.peak == memory.account.allocated + 3 * parameters


def test_memory_that_no_gradient_explains_is_from_before_the_recording():
    simulated = SimulatedTraining(optimizer="Unheard")
    account = told(memory_of(simulated))
    assert account["before_recording"] == 2 * sum(simulated.parameters)
    assert "optimizer" not in account


def test_reserved_memory_beyond_the_tensors_is_cache():
    simulated = SimulatedTraining()
    simulated.allocator.reserved += 1 << 24
    for event in simulated.allocator.events:
        if event["name"] == "[memory]":
            event["args"]["Total Reserved"] = 1 << 28
    account = memory_of(simulated).account
    assert account.reserved == account.peak == 1 << 28
    assert told(memory_of(simulated))["cache"] == (1 << 28) - account.allocated


def test_free_memory_that_did_not_serve_a_request_is_fragmentation():
    allocator = RecordedAllocator(allocated=1 << 20, reserved=4 << 20)
    allocator.span("aten::mm", 0, 90)
    allocator.alloc(1, 1 << 20)
    allocator.reserved = 12 << 20  # the request of 8 MiB did not fit into the free 2 MiB
    allocator.alloc(2, 8 << 20)
    allocator.events.append({**GPU_WORK, "args": {"device": 0, "stream": 7}})
    memory = trace_memory(allocator.trace())
    assert told(memory)["fragmentation"] == 2 << 20


def test_the_capacity_is_that_of_the_device():
    account = memory_of(SimulatedTraining()).account
    assert account.capacity == 85899345920
    assert account.headroom == account.capacity - account.peak


def test_lost_events_give_no_account():
    simulated = SimulatedTraining()
    events = simulated.allocator.events
    events.remove(next(event for event in events if event["name"] == "[memory]" and event["ts"] > 500))
    simulated.allocator.events.append({**GPU_WORK, "args": {"device": 0}})
    assert "lost" in trace_memory(simulated.allocator.trace()).because


def test_without_memory_events_the_signal_is_named():
    allocator = RecordedAllocator()
    allocator.span("aten::mm", 0, 1)
    missing = trace_memory(allocator.trace())
    assert isinstance(missing, Missing)
    assert "profile_memory=True" in missing.because


FOLDER = os.environ.get("TB_BOTTLENECK_TRACES")


@pytest.mark.skipif(not FOLDER, reason="TB_BOTTLENECK_TRACES names no folder with public traces")
def test_the_accounts_of_real_recordings_sum_to_the_reserved_bytes():
    names = ("h100_bert_small", "h100_qwen05b", "mi300_vit_nsfw", "mi300_timesformer", "ptf_bs16_steady")
    for name in names:
        memory = trace_memory(load(str(Path(FOLDER) / f"{name}.json.gz")))
        assert (memory.in_use == memory.events.allocated).all(), name
        assert memory.account.peak == memory.account.reserved > 0, name


@pytest.mark.parametrize(("size", "is_workspace"), [(8_519_680, True), (8_519_168, False)])
def test_the_default_workspace_of_cublas_is_no_activation(size, is_workspace):
    """Two linear layers of 4 kB had 17 MB of "activations and gradients", which grew with the batch."""
    recorded = RecordedAllocator()
    recorded.span("aten::addmm", 10, 20)
    recorded.alloc(15, size)
    recorded.events.append({**GPU_WORK, "args": {"device": 0, "stream": 7, "correlation": 1}})
    memory = trace_memory(recorded.trace())
    assert isinstance(memory, TraceMemory)
    assert told(memory).get("workspaces", 0) == (size if is_workspace else 0)
    assert memory.account.peak == size
