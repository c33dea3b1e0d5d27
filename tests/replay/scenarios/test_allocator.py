"""Driver allocations taken out of a drawn timeline; times in columns."""

from helpers.drawn_graphs import after_fix, columns, drawn_graph

from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.replay.scenarios.host import WITHOUT_ALLOCATIONS

ALLOCATING = """
    step    aaaaaaaaaabbbbbbbbbb
    malloc  ..####......####....
    launch  ......|.........|...
    gpu     .......###.......###
"""


def test_allocations_take_no_time():
    graph = drawn_graph(ALLOCATING)
    assert columns(graph) == 20
    assert after_fix(graph, WITHOUT_ALLOCATIONS) == 12
    assert after_fix(graph, WITHOUT_ALLOCATIONS, Estimate.LOW) == 16, "at worst half of it stays"
