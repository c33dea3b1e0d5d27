"""Collectives shortened and hidden, on drawn timelines worked out by hand; times in columns."""

import pytest
from drawn_worlds import columns, cured, drawn_world

from tb_bottleneck.replay.modified_graph import Case
from tb_bottleneck.replay.scenarios.collectives import SCENARIO

# The second kernel of a step waits for the collective, which begins with the first one's end.
EXPOSED = """
    step    aaabbb..........................
    launch  ||||||..........................
    gpu     .aa.........bbbbcc.........dddd.
    nccl    ...#########......#########.....
"""


def test_half_the_time_of_a_collective_is_half_the_wait():
    """Nine columns become four and a half, twice."""
    world = drawn_world(EXPOSED)
    assert columns(world) == 31
    assert cured(world, SCENARIO) == 31 - 9


def test_at_worst_a_fifth_is_saved():
    assert cured(drawn_world(EXPOSED), SCENARIO, Case.LOW) == pytest.approx(31 - 2 * 9 * 0.2)


def test_at_best_nobody_waits_for_them():
    """Kernels follow one another and end at 13; the last collective begins with the third's end, and ends at 13.5."""
    assert cured(drawn_world(EXPOSED), SCENARIO, Case.HIGH) == 13.5
