"""Launches of captured graphs, and the operations outside of them."""

import json

import pytest

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.diagnosis.parts import Parts, details_of
from tb_bottleneck.diagnosis.trace import diagnose
from tb_bottleneck.text import efficiency as text
from tb_bottleneck.text.report import render
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

HOST = {"ph": "X", "pid": 100, "tid": 100}


def recording(tmp_path, call="cudaGraphLaunch"):
    """Two steps of 1 ms with 4 launches: three kernels twice (once in another order), two on two streams, one alone."""
    events = []

    def add(category, name, begin, length, **fields):
        events.append(HOST | {"cat": category, "name": name, "ts": begin, "dur": length} | fields)

    def launch(number, name, at, *kernels):
        add("cuda_runtime", name, at, 10, args={"correlation": number})
        for kernel, begin, length, stream in kernels:
            place = {"pid": 0, "tid": stream, "args": {"correlation": number, "device": 0, "stream": stream}}
            add("kernel", kernel, begin, length, **place)

    for step in range(2):
        add("user_annotation", f"ProfilerStep#{step}", step * 1_000, 1_000)
        add("user_annotation", "decode", step * 1_000, 300)
        at = step * 1_000 + 100
        names = ("a", "b", "c") if step else ("a", "c", "b")
        kernels = [(name, at + 20 + 30 * place, 20, 7) for place, name in enumerate(names)]
        launch(10 * step + 1, call, at, *kernels)
        launch(10 * step + 2, call, at + 20, ("a", at + 150, 50, 7), ("b", at + 160, 60, 8))
        launch(10 * step + 3, "cudaLaunchKernel", at + 40, ("d", at + 300, 100, 7))
    path = tmp_path / "g.pt.trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    trace = load(str(path))
    return Recording(trace, find_steps(trace))


@pytest.mark.parametrize("call", ["cudaGraphLaunch", "hipGraphLaunch", "cuGraphLaunch"])
def test_operations_times_and_pauses_of_each_graph(tmp_path, call):
    found = details_of(recording(tmp_path, call), Parts()).graphs
    figures = [(row.operations, row.launches, row.device_ns, row.idle_ns, row.idle_before_ns) for row in found.graphs]
    # Nothing ran before the first launch; the second one follows the kernel that ended at 500 us.
    assert figures == [(3, 1, 80_000, 20_000, 620_000), (2, 1, 70_000, 0, 50_000)]
    assert [row.call_ns for row in found.graphs] == [10_000, 10_000]
    assert found.graphs[0].place.block == "decode"
    assert found.launches == 2
    assert [(row.name, row.calls, row.ns_per_step) for row in found.outside] == [("d", 1, 100_000)]
    assert (found.outside_operations, found.outside_ns) == (1, 100_000)
    lines = "\n".join(text.graph_lines(found))
    assert "2 launches per step; outside of them, 1 operations run for 100 µs per step." in lines
    assert "3 operations in block decode, 1 per step: 80.0 µs (20.0 µs of it idle)" in lines


def test_without_a_launch_there_is_no_part(tmp_path):
    assert details_of(recording(tmp_path, "cudaLaunchKernel"), Parts()).graphs is None


def test_numbers_of_a_recording_without_steps_are_in_all(tmp_path):
    recording(tmp_path)
    path = tmp_path / "g.pt.trace.json"
    path.write_text(path.read_text().replace("ProfilerStep#", "step"))
    lines = render(diagnose(str(path)))
    assert "4 launches in all; outside of them, 2 operations run for 200 µs in all." in lines
