"""Twice the batch, on drawn timelines worked out by hand; times in columns, for the recorded samples."""

import pytest
from drawn_worlds import columns, cured, drawn_world

from tb_bottleneck.replay.modified_graph import Case
from tb_bottleneck.replay.scenarios.batch import SCENARIO


def test_kernels_too_small_to_fill_the_device_take_no_longer_for_twice_the_samples():
    world = drawn_world("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  |.........|.........
        small   .#########.#########
    """)
    assert cured(world, SCENARIO) == columns(world) / 2
    assert cured(world, SCENARIO, Case.LOW) > columns(world) / 2


def test_kernels_that_fill_the_device_gain_nothing():
    world = drawn_world("""
        step    ab..................
        launch  ||..................
        gpu     .aaaaaaaaabbbbbbbbb.
    """)
    assert cured(world, SCENARIO) == pytest.approx(columns(world), rel=0.06)
