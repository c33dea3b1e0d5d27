"""No memory events, however wrong, raise an error: they give an account, or the reason why there is none."""

import os
import random

import pytest
from helpers.memory_recordings import RecordedAllocator
from helpers.simulated_training_memory import SimulatedTraining

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.memory.findings import findings_of
from tb_bottleneck.memory.forecast.batch_scaling import samples_of
from tb_bottleneck.memory.forecast.forecasts import Forecaster
from tb_bottleneck.memory.memory_course import course_of
from tb_bottleneck.memory.trace_memory import trace_memory
from tb_bottleneck.report.builders.memory import memory_message
from tb_bottleneck.report.json_form import as_json
from tb_bottleneck.text.sections import memory_lines
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import Trace

CASES = int(os.environ.get("TB_BOTTLENECK_FUZZ", "60"))
VALUES = [0, 1, -1, None, "x", [], 2**40, -(2**40), 2**61, -(2**61), 1e300, True, {"a": 1}, 512, -512]


def damaged(seed: int) -> Trace:
    chance = random.Random(seed)
    cpu = chance.random() < 0.5
    allocator = SimulatedTraining(3, seed=seed, cpu=cpu, built=chance.random() < 0.5).allocator
    if not cpu:
        allocator.span("k", 9, 14, "kernel", device=0)
    for _ in range(chance.choice([1, 3, 10, 30])):
        event = chance.choice(allocator.events)
        match chance.randrange(5):
            case 0:
                event["args"] = {**event.get("args", {}), chance.choice(list(KEYS)): chance.choice(VALUES)}
            case 1:
                event["ts"] = chance.choice([*VALUES, chance.random() * 4000])
            case 2:
                allocator.events.remove(event)
            case 3:
                allocator.events.append(dict(event))
            case _:
                event["name"] = chance.choice(NAMES)
    allocator.events.sort(key=lambda event: event["ts"] if isinstance(event["ts"], float) else 0.0)
    if chance.random() < 0.9:
        _with_totals(allocator)
    recorded = RecordedAllocator()
    recorded.content = lambda **header: {"traceEvents": allocator.events, "profile_memory": 1}  # type: ignore[method-assign]
    return recorded.trace()


KEYS = ("Bytes", "Addr", "Total Allocated", "Total Reserved", "Device Type", "Device Id", "Input Dims")
NAMES = ("[memory]", "aten::mm", "Optimizer.step#SGD.step", "autograd::engine::evaluate_function: X", "ProfilerStep#1")


def _with_totals(allocator: RecordedAllocator) -> None:
    """Makes the chain of totals whole again, so that the account is made of what is wrong."""
    total = 10**9
    for event in allocator.events:
        args = event.get("args", {})
        if event["name"] == "[memory]" and type(args.get("Bytes")) is int and abs(args["Bytes"]) < 2**50:
            total += args["Bytes"]
            args["Addr"] = args.get("Addr") or 1
            args["Total Allocated"] = total


@pytest.mark.parametrize("seed", range(CASES))
def test_damaged_events_give_an_account_that_sums_or_a_reason(seed):
    trace = damaged(seed)
    memory, steps = trace_memory(trace), find_steps(trace)
    if isinstance(memory, Missing):
        assert memory.because
        return
    account = memory.account
    forecasts = Forecaster(memory, samples_of(memory) or 4).all()
    findings = findings_of(memory, steps) if steps is not None else []
    course = course_of(memory, steps.host) if steps is not None else None
    message = memory_message(account, memory.sites(memory.at_peak), findings, forecasts, course)
    assert sum(account.bytes_of.values()) == account.peak
    assert as_json(message)
    assert list(memory_lines(message))
