"""Pointwise kernels merged, on drawn timelines worked out by hand; times in columns."""

from helpers.drawn_graphs import after_fix, columns, drawn_graph

from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.replay.scenarios.fusion import SCENARIO

# The host is far ahead: all is launched in eight columns.
CHAINS = """
    step    aaaabbbb................
    launch  ||||||||................
    gpu     .###........###.........
    stream  ....aaabbbcc...aaabbbcc.
"""


def test_of_a_chain_its_longest_kernel_stays():
    """Three kernels of three, three and two columns become one of three: five columns less in each step."""
    graph = drawn_graph(CHAINS)
    assert columns(graph) == 23
    assert after_fix(graph, SCENARIO) == 23 - 5 - 5


def test_at_worst_half_of_that_is_saved():
    expected, low = (
        after_fix(drawn_graph(CHAINS), SCENARIO, estimate) for estimate in (Estimate.EXPECTED, Estimate.LOW)
    )
    assert (expected, low) == (13, 18)


def test_a_product_between_two_pointwise_kernels_keeps_them_apart():
    graph = drawn_graph("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  |||.......|||.......
        gpu     ....###.......###...
        stream  .aaa...bbbaaa....bbb
    """)
    assert after_fix(graph, SCENARIO) >= columns(graph) - 3, "only the last and the first of two steps are neighbours"
