"""Batches made beside the training, on drawn timelines worked out by hand; times in columns."""

import draw
import pytest
from drawn_worlds import columns, cured, drawn_world

from tb_bottleneck.replay.modified_graph import Case
from tb_bottleneck.replay.scenarios.pipeline import LOADER, LOOP

STARVED = """
    step    aaaaaaaaaabbbbbbbbbb
    loader  ####......####......
    launch  ....|.........|.....
    gpu     .....#####.....#####
"""


@pytest.fixture
def of_unknown_kind(monkeypatch):
    """Drawn fetches do not name the iterator."""
    monkeypatch.setitem(draw._HOST_ROWS, "loader", ("cpu_op", "enumerate(DataPipe)#Own"))


@pytest.fixture
def in_the_loop(monkeypatch):
    """What is drawn as a loader is a library's frame in the loop."""
    frame = ("python_function", "transformers/tokenization_utils_base.py(2828): __call__")
    monkeypatch.setitem(draw._HOST_ROWS, "loader", frame)


def test_a_fetch_of_an_unknown_loader_becomes_taking_a_batch_from_a_queue(of_unknown_kind):
    """One column of each four stays: 20 - 2 x 3. One maker takes eight columns for both: no limit."""
    assert cured(drawn_world(STARVED), LOADER) == 14


def test_at_worst_an_unknown_loader_is_pipelined_already(of_unknown_kind):
    assert cured(drawn_world(STARVED), LOADER, Case.LOW) == columns(drawn_world(STARVED)), "even fetches stay"


def test_one_maker_is_the_limit(of_unknown_kind):
    slow = (
        STARVED.replace("####......", "########..")
        .replace("....|.....", "........|.")
        .replace(".....#####", ".........#")
    )
    world = drawn_world(slow)
    assert cured(world, LOADER) == pytest.approx(16), "two batches of eight columns"
    assert cured(world, LOADER, Case.HIGH) < 16


def test_a_loop_that_makes_its_own_batches_is_cured_alike(in_the_loop):
    world = drawn_world(STARVED, with_stack=1)
    assert cured(world, LOOP) == 14
    assert cured(world, LOOP, Case.HIGH) <= cured(world, LOOP) <= cured(world, LOOP, Case.LOW) < columns(world)
