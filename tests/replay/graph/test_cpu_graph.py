"""Runs on the CPU: the host's thread is the device, and the graph is what it did in each step."""

import json

import pytest
from helpers.draw import drawn
from helpers.drawn_graphs import after_fix, columns, drawn_graph

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.bottlenecks.host import fixes as host
from tb_bottleneck.bottlenecks.input import fixes as loader
from tb_bottleneck.bottlenecks.interruption import fixes as interruption
from tb_bottleneck.bottlenecks.plan import predict
from tb_bottleneck.replay.modified_graph import Estimate, unmodified_graph
from tb_bottleneck.replay.recorded_graph import RecordedGraph
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
    """Four columns are as short as a handover, twice; the rest takes 1.175 times as long beside the worker."""
    assert after_fix(drawn_graph(ON_CPU), loader.WORKERS) == pytest.approx(20 * 1.175)


def test_what_needs_device_work_is_not_predicted():
    """A collective of a CPU run is host time like any other: the graph does not know it."""
    recording = drawn_graph(ON_CPU).base.recording
    assert set(predict(recording, ["exposed_collectives", "checkpointing"]).gains) == {"checkpointing"}


def test_a_checkpoint_that_comes_seldom_leaves_next_to_nothing():
    """It took a fifth of the second step, whose four columns of operators get quicker by 0.18 of that."""
    quicker = 4 * 0.18 * 2 / 10
    assert after_fix(drawn_graph(ON_CPU), interruption.CHECKPOINTS) == pytest.approx(18 - quicker, abs=0.05)
    assert after_fix(drawn_graph(ON_CPU), interruption.CHECKPOINTS, Estimate.HIGH) == pytest.approx(
        18 - quicker, abs=0.01
    )
    assert after_fix(drawn_graph(ON_CPU), interruption.CHECKPOINTS, Estimate.LOW) == pytest.approx(18 + 2 / 3, abs=0.01)


def test_operators_get_quicker_without_the_host_work_beside_them():
    """Python takes half of the second step (a pause between operators is dispatching), the loader 0.4 of each."""
    beside_python = """
        step    aaaaaaaaaabbbbbbbbbb
        op      #####.....#####.....
    """
    graph = drawn_graph(beside_python)
    assert after_fix(graph, host.WITHOUT_PYTHON) == pytest.approx(15 - 5 * 0.18 * 0.5)
    assert after_fix(graph, host.WITHOUT_PYTHON, Estimate.LOW) == 17.5
    batches = drawn_graph(ON_CPU)
    assert after_fix(batches, loader.CHEAPER) == pytest.approx(12 + 8 * 0.05 - 10 * 0.18 * 0.4 * 0.95, abs=0.01)
    assert after_fix(batches, loader.CHEAPER, Estimate.LOW) == 16


def test_the_wait_for_a_collective_of_the_host_is_not_python(tmp_path):
    """Gloo exchanges gradients for three of the six columns after the operators, and keeps doing so after the fix.

    In each step, Python takes three columns of ten, and operators four.
    """
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
    assert after_fix(graph, host.WITHOUT_PYTHON, Estimate.HIGH) == pytest.approx(140 - 2 * 40 * 0.18 * 0.3)
