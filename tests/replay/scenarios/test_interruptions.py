"""Interruptions that come less often, on drawn timelines worked out by hand; times in columns."""

import pytest
from drawn_worlds import columns, cured, drawn_world

from tb_bottleneck.replay.modified_graph import Case
from tb_bottleneck.replay.scenarios.interruptions import CHECKPOINTS, COLLECTION

SAVING = """
    step    aaaaaaaaaabbbbbbbbbb
    save    .....#####.....#####
    launch  |.........|.........
    gpu     .####......####.....
"""


def test_a_hundredth_of_each_interruption_stays():
    """Five columns become 0.05, twice."""
    world = drawn_world(SAVING)
    assert columns(world) == 20
    assert cured(world, CHECKPOINTS) == pytest.approx(10.1, abs=0.01)


def test_bounds_are_a_third_as_often_and_never():
    world = drawn_world(SAVING)
    assert cured(world, CHECKPOINTS, Case.LOW) == pytest.approx(10 + 10 / 3, abs=0.01)
    assert cured(world, CHECKPOINTS, Case.HIGH) == 10


def test_interruptions_of_another_kind_stay():
    assert cured(drawn_world(SAVING), COLLECTION) == 20
