"""Lifetimes are those of the simulated blocks."""

from helpers.memory_recordings import RecordedAllocator
from helpers.simulated_training_memory import SimulatedTraining

from tb_bottleneck.memory import memory_course
from tb_bottleneck.memory.memory_course import lifetimes_of
from tb_bottleneck.memory.trace_memory import trace_memory
from tb_bottleneck.trace.steps import find_steps

NS = 1000


def lifetimes_in(allocator: RecordedAllocator):
    trace = allocator.trace()
    return lifetimes_of(trace_memory(trace), find_steps(trace).host)


def three_steps() -> RecordedAllocator:
    """Steps that each allocate 1 MB, 2 MB and a small block; a block of 8 MB exists from the first to the last."""
    allocator = RecordedAllocator(0, -1)
    for step in range(3):
        at = 1000.0 * step
        allocator.span(f"ProfilerStep#{step}", at, at + 999, "user_annotation")
        allocator.span("aten::linear", at + 1, at + 900)
        if step == 0:
            lasting = allocator.alloc(at + 2, 8_000_000)
        first, second, small = (
            allocator.alloc(at + 100 * (1 + n), size) for n, size in enumerate((10**6, 2 * 10**6, 8))
        )
        allocator.free(at + 500, second)
        allocator.free(at + 600, first)
        allocator.free(at + 650, small)
    allocator.free(2950.0, lasting)
    return allocator


def test_blocks_have_their_times_within_the_step_of_the_peak():
    found = [(it.site.bytes, it.begin, it.end) for it in lifetimes_in(three_steps())]
    # The last of equal peaks is in the third step.
    assert found == [
        (8_000_000, None, 950 * NS),
        (2_000_000, 200 * NS, 500 * NS),
        (1_000_000, 100 * NS, 600 * NS),
        (8, 300 * NS, 650 * NS),
    ]


def test_the_largest_and_the_longest_lived_are_chosen(monkeypatch):
    monkeypatch.setattr(memory_course, "LARGEST", 1)
    monkeypatch.setattr(memory_course, "LONGEST", 1)
    # The small block exists longest of all, but is less than a thousandth of the peak.
    assert [it.site.bytes for it in lifetimes_in(three_steps())] == [8_000_000, 1_000_000]


def test_a_peak_outside_the_steps_has_no_lifetimes():
    simulated = SimulatedTraining(steps=2, cpu=True)
    simulated.allocator.alloc(5_000, 1 << 30)
    assert lifetimes_in(simulated.allocator) == []


def test_places_are_those_of_the_blocks():
    assert {it.site.place.operator for it in lifetimes_in(three_steps())} == {"aten::linear"}
