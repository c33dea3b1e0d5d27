"""Predicted peaks are those of the simulation, or of a second recording, under the other condition."""

import pytest
from helpers.memory_recordings import RecordedAllocator
from helpers.simulated_training_memory import SimulatedTraining

from tb_bottleneck.memory.forecast.batch_scaling import samples_of
from tb_bottleneck.memory.forecast.forecasts import Forecaster
from tb_bottleneck.memory.forecast.precision import checkpointed_peak, lives_of, peak_of
from tb_bottleneck.memory.trace_memory import TraceMemory, trace_memory

GPU_WORK = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 100, "dur": 5, "args": {"device": 0}}


def memory_of(allocator: RecordedAllocator, device: bool = True, **header) -> TraceMemory:
    if device:
        allocator.events.append(GPU_WORK)
    memory = trace_memory(allocator.trace(**header))
    assert isinstance(memory, TraceMemory), memory
    return memory


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("batch", [2, 5])
def test_blocks_without_shapes_grow_unless_their_category_is_fixed(seed, batch):
    memory = memory_of(SimulatedTraining(seed=seed).allocator)
    truth = sum(SimulatedTraining(seed=seed, batch=batch).peak().values())
    forecast = Forecaster(memory, 1).batch(batch)
    assert forecast.peak == pytest.approx(truth)
    assert forecast.low <= truth <= forecast.high


def test_an_unchanged_batch_has_the_recorded_peak():
    memory = memory_of(SimulatedTraining().allocator)
    assert Forecaster(memory, 4).batch(4).peak == memory.account.peak
    assert peak_of(memory, lives_of(memory.blocks, memory.blocks.size), memory.earlier) == memory.in_use.max()


def test_without_samples_there_is_no_forecast_of_the_batch():
    memory = memory_of(SimulatedTraining().allocator)
    assert samples_of(memory) is None
    assert Forecaster(memory, None).batch(8) is None
    assert {it.change for it in Forecaster(memory, None).all()} == {"optimizer", "sharding"}


def test_the_largest_batch_fits_and_the_next_one_does_not():
    properties = [{"id": 0, "name": "A100", "totalGlobalMem": 64 << 20}]
    memory = memory_of(SimulatedTraining().allocator, deviceProperties=properties)
    forecaster = Forecaster(memory, 1)
    best = forecaster.largest_batch()
    samples = int(best.values["samples"])
    assert best.fits(64 << 20)
    assert not forecaster.batch(2 * samples).fits(64 << 20)


def test_another_optimizer_changes_the_state_only():
    memory = memory_of(SimulatedTraining(optimizer="AdamW").allocator)
    parameters = memory.gradient_bytes
    forecast = Forecaster(memory, None).optimizer("SGD")  # with momentum: one state instead of two
    assert memory.account.peak - forecast.peak == parameters
    assert Forecaster(memory, None).optimizer("Unheard") is None


def test_sharding_divides_parameters_gradients_and_state():
    simulated = SimulatedTraining()
    memory = memory_of(simulated.allocator)
    now = sum(simulated.peak()[kind] for kind in ("parameters", "gradients", "optimizer"))
    forecast = Forecaster(memory, None).sharding(4)
    largest = max(simulated.parameters)
    assert forecast.peak == pytest.approx(memory.account.peak - now * 3 / 4 + 2 * largest, rel=0.01)


def with_modules(layers: int = 4, kept: int = 3) -> RecordedAllocator:
    """Returns steps of layers that keep `kept` tensors of 1 MB each, the last of which is the result."""
    allocator = RecordedAllocator(0, -1)
    for step in range(3):
        at = 10_000.0 * step
        allocator.span(f"ProfilerStep#{step}", at, at + 9_999, "user_annotation")
        blocks = []
        for layer in range(layers):
            begin = at + 500 * layer
            allocator.span(f"nn.Module: Block_{layer}", begin, begin + 400, "python_function")
            allocator.span("aten::linear", begin + 1, begin + 399)
            blocks.append([allocator.alloc(begin + 50 * (1 + number), 1_000_000) for number in range(kept)])
        for layer in reversed(range(layers)):
            begin = at + 5_000 + 500 * (layers - layer)
            allocator.span("autograd::engine::evaluate_function: AddmmBackward0", begin, begin + 499)
            for number, block in enumerate(reversed(blocks[layer])):
                allocator.free(begin + 50 * (1 + number), block)
    return allocator


def test_checkpointing_keeps_the_results_and_one_module():
    memory = memory_of(with_modules(), device=False)
    found = checkpointed_peak(memory)
    assert memory.in_use.max() == 12_000_000
    assert found.module == "Block"
    assert found.peak == 3_000_000 + 2_000_000  # results of three modules, and the other tensors of the last one


def test_activations_that_are_never_freed_are_not_checkpointed():
    allocator = with_modules()
    allocator.events = [event for event in allocator.events if event.get("args", {}).get("Bytes", 1) > 0]
    total = 0
    for event in sorted(allocator.events, key=lambda event: event["ts"]):
        if event["name"] == "[memory]":
            event["args"]["Total Allocated"] = total = total + event["args"]["Bytes"]
    memory = memory_of(allocator, device=False)
    assert checkpointed_peak(memory) is None or checkpointed_peak(memory).peak <= memory.in_use.max()


def test_a_single_module_is_not_checkpointed():
    assert checkpointed_peak(memory_of(with_modules(layers=1), device=False)) is None


@pytest.mark.parametrize(("model", "optimizer"), [("encoder", "AdamW"), ("u-net", "SGD"), ("gru", "SGD, momentum")])
def test_real_trainings_have_the_predicted_peak(model, optimizer):
    pytest.importorskip("torch")
    from memory_trainings.record import Training, recorded

    memory, other = (trace_memory(recorded(Training(model, optimizer, samples), steps=2)) for samples in (4, 10))
    assert samples_of(memory) == 4
    forecast = Forecaster(memory, 4).batch(10)
    truth = other.account.peak
    assert forecast.peak == pytest.approx(truth, rel=0.01)
    assert memory.account.peak < 0.75 * truth
