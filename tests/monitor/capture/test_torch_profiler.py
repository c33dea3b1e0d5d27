"""The process measures what the profiler costs, once, and leaves no profiler behind."""

import gzip
import json
import sys
import threading
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch
from monitor.training import Training
from monitor.written import read

from tb_bottleneck import Monitor
from tb_bottleneck.monitor.capture.torch_profiler import profiler_costs, stop_stacks
from tb_bottleneck.monitor.torch_internals import is_profiling
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

NAMES = {"python_slowdown", "python_call_ns", "c_call_ns", "operator_ns", "operator_without_stacks_ns"}


def test_calls_and_operators_cost_time_and_old_bytecode_too() -> None:
    measured = [profiler_costs() for _ in range(5)]  # other programs may hide a cost in one of them
    assert all(set(each) == NAMES for each in measured)
    costs = {name: median(each[name] for each in measured) for name in NAMES}
    assert 10 < costs["python_call_ns"] < 20_000
    assert 10 < costs["c_call_ns"] < 20_000
    assert 100 < costs["operator_ns"] < 200_000
    assert costs["python_slowdown"] >= 1
    if sys.version_info[:2] == (3, 11):
        assert costs["python_slowdown"] > 1.3, "all bytecode is on the slow path"
    assert not torch.autograd._profiler_enabled()
    assert not is_profiling()


def test_a_profile_without_stacks_does_not_trace_python() -> None:
    profiler_costs()
    assert sys.getprofile() is None


def test_a_trace_of_the_monitor_states_them(tmp_path: Path) -> None:
    training = Training()
    with Monitor(tmp_path, captures=1, every_s=0.1):
        training.run(epochs=6)
    (path,) = tmp_path.rglob("*.pt.trace.json.gz")
    context = load(str(path)).header.context
    assert set(context["profiler_costs"]) == NAMES
    assert context["python"].startswith(f"{sys.version_info[0]}.{sys.version_info[1]}")
    assert not [note for note in read(tmp_path).notes if "capture" in note and "drop" in note]


def test_the_last_recorded_steps_have_no_stacks(tmp_path: Path, whole_windows: None) -> None:
    training = Training()
    with Monitor(tmp_path, captures=1, every_s=0.1):
        training.run(epochs=6)
    (path,) = tmp_path.rglob("*.pt.trace.json.gz")
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    marks = sorted((event["ts"], event["ts"] + event["dur"]) for event in events if is_mark(event))
    main = next(event["tid"] for event in events if is_mark(event))
    calls = [event["ts"] for event in events if event.get("cat") == "python_function" and event["tid"] == main]
    per_step = [sum(begin <= call < end for call in calls) for begin, end in marks]
    assert len(marks) == 9
    assert min(per_step[:6]) > 100
    assert max(per_step[7:]) == 0, "stacks are turned off at the beginning of the seventh"
    assert len(find_steps(load(str(path))) or ()) == 6
    assert sys.getprofile() is None


def is_mark(event: dict[str, Any]) -> bool:
    return event.get("cat") == "user_annotation" and event["name"].startswith("ProfilerStep#")


def test_stopping_stacks_keeps_the_profile_function_for_new_threads() -> None:
    before = threading.getprofile()
    threading.setprofile(print)
    try:
        stop_stacks()
        assert threading.getprofile() is print
    finally:
        threading.setprofile(before)  # type: ignore[arg-type]


def test_a_torch_that_cannot_measure_them_costs_the_fact_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> None:
        raise AttributeError("no such function in this torch")

    monkeypatch.setattr("tb_bottleneck.monitor.session.profiler_costs", failing)
    training = Training()
    with Monitor(tmp_path, captures=1, every_s=0.1):
        training.run(epochs=6)
    (path,) = tmp_path.rglob("*.pt.trace.json.gz")
    assert "profiler_costs" not in load(str(path)).header.context
