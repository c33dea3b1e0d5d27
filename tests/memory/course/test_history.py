"""The history has the simulated bytes at the peak and at the end of each step."""

import pytest
from helpers.simulated_training_memory import STEP_US, SimulatedTraining

from tb_bottleneck.memory import memory_course
from tb_bottleneck.memory.memory_course import history_of
from tb_bottleneck.memory.trace_memory import trace_memory
from tb_bottleneck.trace.steps import find_steps


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
