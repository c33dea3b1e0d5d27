"""The largest batch that fits is known where memory and shapes were recorded."""

import pytest
from helpers.draw import drawn_trace
from helpers.simulated_training_memory import SimulatedTraining

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.bottlenecks.allocator.facts import fitting_batch
from tb_bottleneck.trace.steps import find_steps


def taken(capacity: int | None, *, shapes: bool = True) -> Measure | Missing:
    allocator = SimulatedTraining().allocator
    allocator.span("k", 100, 105, "kernel", device=0)
    args = {"Input Dims": [[4, 8], [2, 8], [2]], "Input type": ["float"] * 3} if shapes else {}
    allocator.span("aten::linear", 290, 291, **args)
    properties = [{"id": 0, "name": "A100", **({"totalGlobalMem": capacity} if capacity else {})}]
    trace = allocator.trace(deviceProperties=properties)
    return fitting_batch(Recording(trace, find_steps(trace)))


@pytest.mark.parametrize(("capacity", "factor"), [(6 << 20, 1), (80 << 20, 32)])
def test_the_batch_can_grow_until_memory_is_full(capacity, factor):
    assert taken(capacity).value == factor
    peaks = [sum(SimulatedTraining(batch=factor * times).peak().values()) for times in (1, 2)]
    assert peaks[0] < capacity < 1.2 * peaks[1]


@pytest.mark.parametrize(
    ("memory", "factor"),
    [([12e9, 10e9], 4), ([70e9, 10e9], 1), ([12e9, 1e6], 1024), ([12e9], None), ([0, 1], None), ("12 GB", None)],
)
def test_counters_of_the_run_show_how_far_the_batch_can_grow(memory, factor):
    """The 2 GB outside of torch stay the same, and all of torch's memory is taken to grow."""
    properties = [{"id": 0, "name": "A100", "totalGlobalMem": int(50e9)}]
    context = {"context": {"device_memory_bytes": memory}}
    trace = drawn_trace("step abc\ngpu .x.", deviceProperties=properties, tb_bottleneck=context)
    found = fitting_batch(Recording(trace, find_steps(trace)))
    assert (found.value if isinstance(found, Measure) else None) == factor


def test_it_is_missing_without_shapes_or_size():
    assert isinstance(taken(None), Missing)
    assert isinstance(taken(80 << 20, shapes=False), Missing)
