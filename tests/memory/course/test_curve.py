"""The curve of a step has the simulated bytes of each category, and its highest point is the peak."""

import pytest
from helpers.simulated_training_memory import SimulatedTraining

from tb_bottleneck.memory import memory_course
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
