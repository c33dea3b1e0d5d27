"""Tests that collectives are shortened, and hidden behind the backward pass.

Some timelines are drawn and worked out by hand, with times in columns; others are of a simulated training.
"""

import pytest
from helpers.drawn_graphs import after_fix, columns, drawn_graph
from helpers.simulated_graphs import simulated_graph
from simulate.problems import PROBLEMS

from tb_bottleneck.bottlenecks.communication.fixes import FASTER_COLLECTIVES, OVERLAP
from tb_bottleneck.replay.modified_graph import Estimate

# The second kernel of a step waits for the collective, which begins with the first one's end.
EXPOSED = """
    step    aaabbb..........................
    launch  ||||||..........................
    gpu     .aa.........bbbbcc.........dddd.
    nccl    ...#########......#########.....
"""


def test_half_the_time_of_a_collective_is_half_the_wait():
    """Nine columns become four and a half, twice."""
    graph = drawn_graph(EXPOSED)
    assert columns(graph) == 31
    assert after_fix(graph, FASTER_COLLECTIVES) == 31 - 9


def test_at_worst_a_fifth_is_saved():
    assert after_fix(drawn_graph(EXPOSED), FASTER_COLLECTIVES, Estimate.LOW) == pytest.approx(31 - 2 * 9 * 0.2)


def test_at_best_there_is_no_wait_for_them():
    """Kernels follow one another and end at 13; the last collective begins with the third's end, and ends at 13.5."""
    assert after_fix(drawn_graph(EXPOSED), FASTER_COLLECTIVES, Estimate.HIGH) == 13.5


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
