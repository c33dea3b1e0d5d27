"""what-if states the peak of the memory where the recording shows it."""

import pytest
from helpers.simulated_training_memory import SimulatedTraining

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.comparison.what_if.outcome import add_peak_memory
from tb_bottleneck.memory.forecast.forecasts import MAX_GROWTH
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.trace.steps import find_steps

GPU_WORK = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 100, "dur": 5, "args": {"device": 0}}


def predicted(device=None, batch=None, precision=None, *, memory: bool = True) -> pb.WhatIf:
    allocator = SimulatedTraining().allocator
    allocator.events.append(GPU_WORK)
    if not memory:
        allocator.events = [event for event in allocator.events if event["name"] != "[memory]"]
    allocator.span("aten::linear", 90, 91, **{"Input Dims": [[4, 8], [2, 8], [2]], "Input type": ["float"] * 3})
    trace = allocator.trace(tb_bottleneck={"context": {"batch_size": 4}})
    prediction = pb.WhatIf()
    add_peak_memory(prediction, Recording(trace, find_steps(trace)), device=device, batch=batch, precision=precision)
    return prediction


def test_a_larger_batch_has_a_higher_peak_and_a_note():
    prediction = predicted(batch=16)
    memory = prediction.memory
    assert memory.low_bytes <= memory.peak_bytes <= memory.high_bytes
    assert memory.peak_bytes > memory.now_bytes
    assert memory.fits
    assert "it fits" in prediction.notes[0]


@pytest.mark.parametrize("options", [{"batch": 16}, {"device": "Tesla T4"}])
def test_the_largest_batch_that_fits_is_said(options):
    prediction = predicted(**options)
    assert prediction.memory.largest_batch == 4 * MAX_GROWTH, "the recorded peak is less than a megabyte"
    assert "The largest batch that fits is 4,096 samples" in prediction.notes[0]
    assert not predicted(precision="bf16").memory.HasField("largest_batch"), "it is known for the recorded types only"


def test_another_device_has_another_capacity():
    assert predicted(device="NVIDIA H200").memory.capacity_bytes == pytest.approx(150e9, rel=0.01)
    assert predicted(device="Tesla T4").memory.capacity_bytes == pytest.approx(15.6e9, rel=0.01)
    with pytest.raises(NotFound):
        predicted(device="NVIDIA X9999")


def test_half_precision_lowers_the_peak():
    memory = predicted(precision="bf16").memory
    assert memory.low_bytes < memory.now_bytes


@pytest.mark.parametrize("options", [{"precision": "tf32"}, {}, {"batch": 8, "precision": "bf16"}])
def test_other_changes_say_nothing_about_memory(options):
    assert not predicted(**options).HasField("memory")


def test_without_memory_events_nothing_is_said():
    assert not predicted(batch=16, memory=False).HasField("memory")
