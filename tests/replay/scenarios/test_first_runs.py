"""First runs that are over, on a drawn timeline worked out by hand; times in columns."""

import pytest
from helpers import draw
from helpers.drawn_graphs import after_fix, columns, drawn_graph

from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.replay.scenarios.host import WITHOUT_FIRST_RUNS

LOADING = """
    step    aaaaaaaaaabbbbbbbbbb
    malloc  ...####.............
    launch  .......|..|.........
    gpu     ........##.#########
"""


@pytest.fixture
def module_loading(monkeypatch):
    """The drawn cudaMalloc loads a module."""
    monkeypatch.setitem(draw.HOST_ROWS, "malloc", ("cuda_driver", "cuModuleLoadData"))


def test_loading_takes_no_time(module_loading):
    """Its four columns are gone; at worst two of them come back."""
    graph = drawn_graph(LOADING)
    assert after_fix(graph, WITHOUT_FIRST_RUNS) == columns(graph) - 4
    assert after_fix(graph, WITHOUT_FIRST_RUNS, Estimate.LOW) == columns(graph) - 2
    assert after_fix(graph, WITHOUT_FIRST_RUNS, Estimate.HIGH) == after_fix(graph, WITHOUT_FIRST_RUNS)


def test_a_training_that_has_settled_gains_nothing():
    graph = drawn_graph(LOADING)
    assert after_fix(graph, WITHOUT_FIRST_RUNS) == columns(graph)
