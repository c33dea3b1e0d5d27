"""Interruptions that come less often, on drawn timelines worked out by hand; times in columns."""

import pytest
from helpers.drawn_graphs import after_fix, columns, drawn_graph

from tb_bottleneck.replay.modified_graph import Estimate
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
