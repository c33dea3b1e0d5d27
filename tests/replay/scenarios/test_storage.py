"""Storage that answers evenly, on drawn timelines worked out by hand; times in columns."""

import pytest
from drawn_worlds import columns, cured, drawn_world

from tb_bottleneck.replay.modified_graph import Case
from tb_bottleneck.replay.scenarios import loader
from tb_bottleneck.replay.scenarios.storage import SCENARIO, evened

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
    world = drawn_world(UNEVEN)
    before = columns(world)
    assert cured(world, SCENARIO) == pytest.approx(before - 20, abs=0.1)
    assert cured(world, SCENARIO, Case.LOW) == pytest.approx(before - 10, abs=0.1)


def test_at_best_nobody_waits_for_a_batch():
    world = drawn_world(UNEVEN)
    assert cured(world, SCENARIO, Case.HIGH) < cured(world, SCENARIO)


def test_fetches_that_are_all_slow_are_left_to_workers():
    world = drawn_world(EVEN)
    assert columns(evened(world, staying=0.0)) == columns(world)
    assert cured(world, SCENARIO) == cured(world, loader.SCENARIO) < columns(world)


def test_even_fetches_of_an_unknown_loader_are_not_predicted():
    assert SCENARIO.cure(drawn_world(EVEN.replace("loader ", "op     ")), Case.EXPECTED) is None
