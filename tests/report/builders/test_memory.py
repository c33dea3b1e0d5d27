"""The memory part of a report sums to its peak; what is not known is absent."""

from helpers.simulated_training_memory import SimulatedTraining

from tb_bottleneck.diagnosis.memory import recorded_memory
from tb_bottleneck.report.json_form import as_dict
from tb_bottleneck.text.sections import memory_lines
from tb_bottleneck.text.terminal import Layout
from tb_bottleneck.trace.steps import find_steps

GPU_WORK = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 100, "dur": 5, "args": {"device": 0}}


MEMORY = 40 << 20  # bytes: small, so that the tensors of these trainings matter


def memory_of(simulated: SimulatedTraining, *, device: bool = True):
    if device:
        simulated.allocator.events.append(GPU_WORK)
    trace = simulated.allocator.trace(deviceProperties=[{"id": 0, "name": "A100", "totalGlobalMem": MEMORY}])
    return recorded_memory(trace, find_steps(trace))


def test_the_parts_sum_to_the_peak():
    memory = as_dict(memory_of(SimulatedTraining()))
    assert sum(part["bytes"] for part in memory["parts"]) == memory["peak_bytes"] == memory["reserved_bytes"]
    assert sum(part["share"] for part in memory["parts"]) == 1
    assert memory["headroom_bytes"] == memory["capacity_bytes"] - memory["peak_bytes"]


def test_the_capacity_of_the_host_is_absent():
    memory = as_dict(memory_of(SimulatedTraining(cpu=True), device=False))
    assert not {"capacity_bytes", "headroom_bytes", "reserved_bytes"} & set(memory)
    assert memory["estimated_bytes"] > 0
    assert "estimated" in memory["missing"]


def test_the_text_names_parts_places_and_findings():
    text = Layout(100).text(memory_lines(memory_of(SimulatedTraining(steps=7, leak=1 << 20))))
    assert "Memory at the peak" in text
    assert "Optimizer state" in text
    assert "[activations_dominate]" in text
    assert "aten::linear" in text
    assert "[retained_graph]" not in text, "worth fixing: it stands among the findings about time"
    assert "free" in text.splitlines()[0]


def test_a_recording_without_memory_events_has_no_memory_part():
    simulated = SimulatedTraining()
    simulated.allocator.events = [event for event in simulated.allocator.events if event["name"] != "[memory]"]
    assert memory_of(simulated) is None
