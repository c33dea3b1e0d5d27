"""Collectives behind the backward pass, hidden by it; on a simulated training."""

import pytest
from helpers.drawn_graphs import drawn_graph
from helpers.simulated_graphs import simulated_graph
from simulate.problems import PROBLEMS

from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.replay.scenarios.communication import OVERLAP


def test_what_the_backward_pass_can_hide_goes():
    graph = simulated_graph(PROBLEMS["collectives after the backward pass"].make(11))
    windows = {estimate: OVERLAP.apply(graph, estimate).window() for estimate in Estimate}
    assert windows[Estimate.HIGH] < windows[Estimate.EXPECTED] < windows[Estimate.LOW] < graph.window()


def test_without_a_backward_pass_nothing_is_predicted():
    graph = drawn_graph("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  ||........||........
        gpu     .##.......##........
        nccl    ...####......####...
    """)
    assert OVERLAP.apply(graph, Estimate.EXPECTED) is None
    assert graph.window() == pytest.approx(2_000_000)
