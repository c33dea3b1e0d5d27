"""Twice the batch, on drawn timelines worked out by hand; times in columns, for the recorded samples."""

import pytest
from helpers.drawn_graphs import after_fix, columns, drawn_graph

from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.replay.scenarios.launches import LARGER_BATCH


def test_kernels_too_small_to_fill_the_device_take_no_longer_for_twice_the_samples():
    graph = drawn_graph("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  |.........|.........
        small   .#########.#########
    """)
    assert after_fix(graph, LARGER_BATCH) == columns(graph) / 2
    assert after_fix(graph, LARGER_BATCH, Estimate.LOW) > columns(graph) / 2


def test_kernels_that_fill_the_device_gain_nothing():
    graph = drawn_graph("""
        step    ab..................
        launch  ||..................
        gpu     .aaaaaaaaabbbbbbbbb.
    """)
    assert after_fix(graph, LARGER_BATCH) == pytest.approx(columns(graph), rel=0.06)
