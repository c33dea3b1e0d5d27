"""Operators that compute on the host, taken out of a drawn timeline; times in columns of 1 ms."""

from helpers.drawn_graphs import drawn_recording

from tb_bottleneck.replay.modified_graph import Estimate, RecordedGraph, unmodified_graph
from tb_bottleneck.replay.scenarios.host import WITHOUT_HOST_OPERATORS

METRICS = """
    step    aaaaaaaaaabbbbbbbbbb
    op      .#####.....#####....
    launch  ......|.........|...
    gpu     .......##........##.
"""


def milliseconds(estimate: Estimate) -> float:
    graph = unmodified_graph(RecordedGraph(drawn_recording(METRICS, unit_us=1000.0)))
    after = WITHOUT_HOST_OPERATORS.apply(graph, estimate)
    return round(after.window() / 1e6, 1)


def test_their_time_goes():
    assert milliseconds(Estimate.HIGH) == milliseconds(Estimate.EXPECTED) < 12
    assert 12 < milliseconds(Estimate.LOW) < 18
