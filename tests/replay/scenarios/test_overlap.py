"""Collectives behind the backward pass, hidden by it; on a simulated training."""

import pytest
from drawn_worlds import drawn_world
from simulate.problems import PROBLEMS
from simulated_worlds import world_of

from tb_bottleneck.replay.modified_graph import Case
from tb_bottleneck.replay.scenarios.overlap import SCENARIO


def test_what_the_backward_pass_can_hide_goes():
    world = world_of(PROBLEMS["collectives after the backward pass"].make(11))
    windows = {case: SCENARIO.cure(world, case).window() for case in Case}
    assert windows[Case.HIGH] < windows[Case.EXPECTED] < windows[Case.LOW] < world.window()


def test_without_a_backward_pass_nothing_is_predicted():
    world = drawn_world("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  ||........||........
        gpu     .##.......##........
        nccl    ...####......####...
    """)
    assert SCENARIO.cure(world, Case.EXPECTED) is None
    assert world.window() == pytest.approx(2_000_000)
