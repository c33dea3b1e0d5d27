"""Runs on the CPU: the host's thread is the device, and the graph is what it did in each step."""

import json

import pytest
from helpers.draw import drawn
from helpers.drawn_graphs import after_fix, columns, drawn_graph

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.replay.modified_graph import Estimate, RecordedGraph, unmodified_graph
from tb_bottleneck.replay.plan import predict
from tb_bottleneck.replay.scenarios import host, loader
from tb_bottleneck.trace.steps import find_steps
from tb_bottleneck.trace.trace import load

ON_CPU = """
    step    aaaaaaaaaabbbbbbbbbb
    loader  ####......####......
    op      ....######....####..
    save    ..................##
"""


def test_the_recorded_time_comes_back():
    graph = drawn_graph(ON_CPU)
    assert columns(graph) == 20
    assert graph.base.check.trusted
    assert graph.base.check.error == 0


def test_a_loader_in_workers_leaves_taking_a_batch():
    """Four columns become one, twice; one worker would do: it makes two batches in eight columns.

    The rest takes 1.175 times as long beside it.
    """
    assert after_fix(drawn_graph(ON_CPU), loader.WORKERS) == pytest.approx(14 * 1.175)


def test_what_needs_device_work_is_not_predicted():
    """A collective of a CPU run is host time like any other: the graph does not know it."""
    recording = drawn_graph(ON_CPU).base.recording
    assert set(predict(recording, ["exposed_collectives", "checkpointing"]).gains) == {"checkpointing"}


def test_a_checkpoint_that_comes_seldom_leaves_next_to_nothing():
    assert after_fix(drawn_graph(ON_CPU), host.CHECKPOINTS) == pytest.approx(18, abs=0.05)
    assert after_fix(drawn_graph(ON_CPU), host.CHECKPOINTS, Estimate.HIGH) == 18


def test_the_wait_for_a_collective_of_the_host_is_not_python(tmp_path):
    """Gloo exchanges gradients for three of the six columns after the operators, and keeps doing so after the fix."""
    drawing = """
        step    aaaaaaaaaabbbbbbbbbb
        op      ####......####......
    """
    whole = drawn(drawing, 1000)
    row = {"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "pid": 100, "tid": 777}
    whole["traceEvents"] += [row | {"ts": column * 1000, "dur": 3000} for column in (4, 14)]
    path = tmp_path / "gloo.pt.trace.json"
    path.write_text(json.dumps(whole))
    trace = load(str(path))
    graph = unmodified_graph(RecordedGraph(Recording(trace, find_steps(trace))))
    assert columns(graph) == 200
    assert after_fix(graph, host.WITHOUT_PYTHON, Estimate.HIGH) == 140
