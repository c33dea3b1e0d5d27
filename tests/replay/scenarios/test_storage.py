"""Storage that answers evenly, on drawn timelines worked out by hand; times in columns."""

import pytest
from helpers.drawn_graphs import after_fix, columns, drawn_graph

from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.replay.scenarios import loader
from tb_bottleneck.replay.scenarios.loader import STORAGE, evened

# Eight fetches of two columns, but for two of twelve: unlike a usual one, and not in the rhythm of workers.
UNEVEN = """
    step    aaaaabbbbbcccccccccccccccdddddeeeeefffffggggggggggggggghhhhh
    loader  ##...##...############...##...##...##...############...##...
    launch  ..|....|..............|....|....|....|..............|....|..
    gpu     ...##...##.............##...##...##...##.............##...##
"""
EVEN = """
    step    aaaaaaaaaabbbbbbbbbb
    loader  ######....######....
    launch  ......|.........|...
    gpu     .......###.......###
"""


def test_slow_fetches_become_usual_ones():
    """Ten columns of each of the two are gone; at worst five."""
    graph = drawn_graph(UNEVEN)
    before = columns(graph)
    assert after_fix(graph, STORAGE) == pytest.approx(before - 20, abs=0.1)
    assert after_fix(graph, STORAGE, Estimate.LOW) == pytest.approx(before - 10, abs=0.1)


def test_at_best_there_is_no_wait_for_a_batch():
    graph = drawn_graph(UNEVEN)
    assert after_fix(graph, STORAGE, Estimate.HIGH) < after_fix(graph, STORAGE)


def test_fetches_that_are_all_slow_are_left_to_workers():
    graph = drawn_graph(EVEN)
    assert columns(evened(graph, staying=0.0)) == columns(graph)
    assert after_fix(graph, STORAGE) == after_fix(graph, loader.WORKERS) < columns(graph)


def test_even_fetches_of_an_unknown_loader_are_not_predicted():
    assert STORAGE.apply(drawn_graph(EVEN.replace("loader ", "op     ")), Estimate.EXPECTED) is None
