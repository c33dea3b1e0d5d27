"""Python taken out of a drawn timeline; times in columns of 1 ms, since shorter pauses are dispatching."""

from helpers.drawn_graphs import drawn_recording

from tb_bottleneck.replay.modified_graph import Estimate, RecordedGraph, unmodified_graph
from tb_bottleneck.replay.scenarios.host import WITHOUT_PYTHON

PYTHON = """
    step    aaaaaaaaaabbbbbbbbbb
    op      ..........#.........
    launch  ......|.........|...
    gpu     .......###.......###
"""


def milliseconds(estimate: Estimate) -> float:
    graph = unmodified_graph(RecordedGraph(drawn_recording(PYTHON, unit_us=1000.0)))
    after = WITHOUT_PYTHON.apply(graph, estimate)
    return round(after.window() / 1e6, 1)


def test_pauses_outside_operators_go():
    """Per step: six columns before the launch (five behind the operator), three behind it."""
    assert milliseconds(Estimate.HIGH) == milliseconds(Estimate.EXPECTED)
    assert milliseconds(Estimate.EXPECTED) < 10 < milliseconds(Estimate.LOW) < 20
