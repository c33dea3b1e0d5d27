"""Collectives shortened and hidden, on drawn timelines worked out by hand; times in columns."""

import pytest
from helpers.drawn_graphs import after_fix, columns, drawn_graph

from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.replay.scenarios.communication import FASTER_COLLECTIVES

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
