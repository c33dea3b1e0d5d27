"""First runs that are over, on a drawn timeline worked out by hand; times in columns."""

import draw
import pytest
from drawn_worlds import columns, cured, drawn_world

from tb_bottleneck.replay.modified_graph import Case
from tb_bottleneck.replay.scenarios.first_runs import SCENARIO

LOADING = """
    step    aaaaaaaaaabbbbbbbbbb
    malloc  ...####.............
    launch  .......|..|.........
    gpu     ........##.#########
"""


@pytest.fixture
def module_loading(monkeypatch):
    """What is drawn as cudaMalloc loads a module."""
    monkeypatch.setitem(draw._HOST_ROWS, "malloc", ("cuda_driver", "cuModuleLoadData"))


def test_loading_takes_no_time(module_loading):
    """Its four columns are gone; at worst two of them come back."""
    world = drawn_world(LOADING)
    assert cured(world, SCENARIO) == columns(world) - 4
    assert cured(world, SCENARIO, Case.LOW) == columns(world) - 2
    assert cured(world, SCENARIO, Case.HIGH) == cured(world, SCENARIO)


def test_a_training_that_has_settled_gains_nothing():
    world = drawn_world(LOADING)
    assert cured(world, SCENARIO) == columns(world)
