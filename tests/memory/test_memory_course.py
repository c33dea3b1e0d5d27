"""Tests the curve of a step, the history of the steps, and the lifetimes of blocks against simulated memory."""

import pytest
from helpers.memory_recordings import RecordedAllocator
from helpers.simulated_training_memory import STEP_US, SimulatedTraining

from tb_bottleneck.memory import memory_course
from tb_bottleneck.memory.memory_course import history_of, lifetimes_of
from tb_bottleneck.memory.trace_memory import trace_memory
from tb_bottleneck.trace.steps import find_steps


def curve_in(simulated: SimulatedTraining):
    if simulated.allocator._device["Device Type"]:
        simulated.allocator.span("k", 100, 105, "kernel", device=0)
    trace = simulated.allocator.trace()
    memory = trace_memory(trace)
    return memory, memory_course.curve_of(memory, find_steps(trace).host)


@pytest.mark.parametrize("cpu", [False, True])
@pytest.mark.parametrize("points", [10, 1000])
def test_the_highest_point_is_the_peak_of_the_account(cpu, points, monkeypatch):
    monkeypatch.setattr(memory_course, "POINTS", points)
    memory, found = curve_in(SimulatedTraining(cpu=cpu))
    at_peak = {category.value: int(values[found.peak]) for category, values in found.bytes_of.items()}
    account = {category.value: size for category, size in memory.account.rows}
    assert {kind: size for kind, size in at_peak.items() if size} == account
    totals = sum(found.bytes_of.values())
    assert totals.argmax() == found.peak or totals[found.peak] == totals.max()
    assert len(found.times) <= points + 1
    assert (found.times[1:] >= found.times[:-1]).all()


def test_every_point_has_the_simulated_bytes(monkeypatch):
    monkeypatch.setattr(memory_course, "POINTS", 10_000)
    simulated = SimulatedTraining(steps=3)
    _, found = curve_in(simulated)
    per_step = len(found.times)
    # The last step has the peak; it frees the gradients of the step before first.
    expected = [state["activations"] for state in simulated.truth[-per_step:]]
    assert found.bytes_of[memory_course.Category.ACTIVATIONS].tolist() == expected


def test_a_peak_outside_the_steps_has_no_curve():
    simulated = SimulatedTraining(steps=2, cpu=True)
    simulated.allocator.alloc(5_000, 1 << 30)
    assert curve_in(simulated)[1] is None


def history_in(simulated: SimulatedTraining):
    if simulated.allocator._device["Device Type"]:
        simulated.allocator.span("k", 100, 105, "kernel", device=0)
    trace = simulated.allocator.trace()
    memory, steps = trace_memory(trace), find_steps(trace)
    return memory, history_of(memory, steps.host)


def truth_of(simulated: SimulatedTraining) -> list[tuple[int, int]]:
    """Returns the most bytes and the bytes at the end of each step."""
    events = [event for event in simulated.allocator.events if event["name"] == "[memory]"]
    found: dict[int, list[int]] = {}
    for event, state in zip(events, simulated.truth, strict=True):
        found.setdefault(int(event["ts"] // STEP_US), []).append(sum(state.values()))
    steps = [found[step] for step in sorted(found) if step >= 0]
    before = [steps[0][0] - events[0]["args"]["Bytes"], *(step[-1] for step in steps[:-1])]
    return [(max([*step, first]), step[-1]) for step, first in zip(steps, before, strict=True)]


@pytest.mark.parametrize("cpu", [False, True])
@pytest.mark.parametrize("leak", [0, 100_000])
def test_every_step_has_its_peak_and_its_end(cpu, leak):
    simulated = SimulatedTraining(steps=6, cpu=cpu, leak=leak)
    memory, found = history_in(simulated)
    assert (found.steps, len(found.peaks)) == (1, 6 if cpu else 5)  # on a device, the first step is not judged
    truth, estimated = truth_of(simulated)[-len(found.peaks) :], memory.account.estimated
    assert found.peaks.tolist() == [peak + estimated for peak, _ in truth]
    assert found.ends.tolist() == [end + estimated for _, end in truth]
    assert max(found.peaks) == memory.account.peak


def test_many_steps_are_merged_to_their_highest(monkeypatch):
    whole = history_in(SimulatedTraining(steps=7, leak=4096, cpu=True))[1]
    monkeypatch.setattr(memory_course, "POINTS", 3)
    merged = history_in(SimulatedTraining(steps=7, leak=4096, cpu=True))[1]
    assert merged.steps == 3
    assert merged.peaks.tolist() == [max(whole.peaks[:3]), max(whole.peaks[3:6]), whole.peaks[6]]
    assert merged.ends.tolist() == [whole.ends[2], whole.ends[5], whole.ends[6]]


def test_a_single_step_has_no_history():
    assert history_in(SimulatedTraining(steps=1, cpu=True))[1] is None


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
