"""Interruptions that come less often, on drawn timelines worked out by hand; times in columns."""

import pytest
from helpers.drawn_graphs import after_fix, columns, drawn_graph
from helpers.typed_runs import typed_recording

from tb_bottleneck.replay.modified_graph import Estimate, RecordedGraph, unmodified_graph
from tb_bottleneck.replay.scenarios.interruptions import CHECKPOINTS, COLLECTION

SAVING = """
    step    aaaaaaaaaabbbbbbbbbb
    save    .....#####.....#####
    launch  |.........|.........
    gpu     .####......####.....
"""


def test_a_hundredth_of_each_interruption_stays():
    """Five columns become 0.05, twice."""
    graph = drawn_graph(SAVING)
    assert columns(graph) == 20
    assert after_fix(graph, CHECKPOINTS) == pytest.approx(10.1, abs=0.01)


def test_bounds_are_a_third_as_often_and_never():
    graph = drawn_graph(SAVING)
    assert after_fix(graph, CHECKPOINTS, Estimate.LOW) == pytest.approx(10 + 10 / 3, abs=0.01)
    assert after_fix(graph, CHECKPOINTS, Estimate.HIGH) == 10


def test_interruptions_of_another_kind_stay():
    assert after_fix(drawn_graph(SAVING), COLLECTION) == 20


def test_on_a_cpu_the_high_estimate_has_the_pace_of_the_quickest_operators_in_python_too(tmp_path):
    """A writer's thread takes turns with Python. Operators take 2 columns once, 4 otherwise; Python 6 and 4."""
    drawing = f"""
        step    {"aaaaaaaaaabbbbbbbbbb" * 3}
        save    {"##........" * 6}
        op      ..aa......{"..aaaa...." * 5}
    """
    graph = unmodified_graph(RecordedGraph(typed_recording(tmp_path, drawing, "float", unit_us=1000.0)))
    operators, python = 2 + 5 * 4, 6 + 5 * 4
    quickest = 6 * 2 / operators
    after = CHECKPOINTS.apply(graph, Estimate.HIGH).window() / 1e6
    assert after == pytest.approx((operators + python) * quickest, abs=0.1)
