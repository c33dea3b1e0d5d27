"""Lower bounds of a modified graph's window, whatever its items are."""

from helpers.drawn_graphs import UNIT_NS, columns, drawn_graph

BUSY = """
    step    aaaaaaaaaabbbbbbbbbb
    launch  |.........|.........
    gpu     .######....######...
"""


def test_a_window_is_never_shorter_than_its_kernels():
    """Even a host that needs no time leaves twice six columns of work."""
    graph = drawn_graph(BUSY)
    hasty = graph.with_items(gap=graph.items.gap.each(lambda column: column * 0), cost=graph.items.cost * 0)
    assert columns(hasty) >= 12


def test_a_floor_holds_and_only_the_highest_counts():
    graph = drawn_graph(BUSY)
    assert columns(graph.with_floor(30 * UNIT_NS).with_floor(25 * UNIT_NS)) == 30
    assert columns(graph.with_floor(UNIT_NS)) == 20


def test_a_larger_batch_is_counted_per_sample():
    graph = drawn_graph(BUSY)
    assert columns(graph.with_batch(2)) == columns(graph) / 2
