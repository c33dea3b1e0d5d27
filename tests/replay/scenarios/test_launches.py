"""Launches replayed as a graph, and fused optimizers, on drawn timelines worked out by hand; times in columns."""

import pytest
from helpers.drawn_graphs import after_fix, columns, drawn_graph

from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.replay.scenarios.launches import COMPILED_DISPATCH_SHARE, GRAPH, GRAPH_DISPATCH_SHARE

LATE = """
    step    aaaaaaaaaabbbbbbbbbb
    op      ####################
    launch  ..|..|..|...|..|..|.
    gpu     ...#..#..#...#..#..#
"""


def test_the_host_dispatches_in_a_twentieth_of_its_time():
    """Host time shrinks from twenty columns to one; six kernels of a column each are the limit."""
    graph = drawn_graph(LATE)
    assert columns(graph) == 20
    assert after_fix(graph, GRAPH) == pytest.approx(6, abs=6 * 0.02 + 20 * GRAPH_DISPATCH_SHARE)


def test_at_worst_dispatching_is_halved():
    """The last launch comes at column 9 instead of 18; its kernel begins a column later, as recorded, and takes one."""
    assert after_fix(drawn_graph(LATE), GRAPH, Estimate.LOW) == 18 * COMPILED_DISPATCH_SHARE + 1 + 1


def test_a_busy_device_is_the_limit():
    """The device works in eighteen of twenty columns."""
    graph = drawn_graph("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  |||.......|||.......
        gpu     .aaabbbcccaaabbbccc.
    """)
    assert after_fix(graph, GRAPH) == pytest.approx(18, abs=0.1)
