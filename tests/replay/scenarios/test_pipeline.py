"""Batches made next to the training, on drawn timelines worked out by hand; times in columns."""

import pytest
from helpers import draw
from helpers.drawn_graphs import after_fix, columns, drawn_graph

from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.replay.scenarios.loader import LOADER, LOOP

WAITING = """
    step    aaaaaaaaaabbbbbbbbbb
    loader  ####......####......
    launch  ....|.........|.....
    gpu     .....#####.....#####
"""


@pytest.fixture
def of_unknown_kind(monkeypatch):
    """Drawn fetches do not name the iterator."""
    monkeypatch.setitem(draw.HOST_ROWS, "loader", ("cpu_op", "enumerate(DataPipe)#Own"))


@pytest.fixture
def in_the_loop(monkeypatch):
    """The drawn loader is a library's frame in the loop."""
    frame = ("python_function", "transformers/tokenization_utils_base.py(2828): __call__")
    monkeypatch.setitem(draw.HOST_ROWS, "loader", frame)


def test_a_fetch_of_an_unknown_loader_becomes_taking_a_batch_from_a_queue(of_unknown_kind):
    """One column of each four stays: 20 - 2 x 3. One maker takes eight columns for both: no limit."""
    assert after_fix(drawn_graph(WAITING), LOADER) == 14


def test_at_worst_an_unknown_loader_is_pipelined_already(of_unknown_kind):
    assert after_fix(drawn_graph(WAITING), LOADER, Estimate.LOW) == columns(drawn_graph(WAITING)), "even fetches stay"


def test_one_maker_is_the_limit(of_unknown_kind):
    slow = (
        WAITING.replace("####......", "########..")
        .replace("....|.....", "........|.")
        .replace(".....#####", ".........#")
    )
    graph = drawn_graph(slow)
    assert after_fix(graph, LOADER) == pytest.approx(16), "two batches of eight columns"
    assert after_fix(graph, LOADER, Estimate.HIGH) < 16


def test_a_loop_that_makes_its_own_batches_is_fixed_alike(in_the_loop):
    graph = drawn_graph(WAITING, with_stack=1)
    assert after_fix(graph, LOOP) == 14
    assert (
        after_fix(graph, LOOP, Estimate.HIGH)
        <= after_fix(graph, LOOP)
        <= after_fix(graph, LOOP, Estimate.LOW)
        < columns(graph)
    )
