"""Pointwise kernels merged, on drawn timelines worked out by hand; times in columns."""

from drawn_worlds import columns, cured, drawn_world

from tb_bottleneck.replay.modified_graph import Case
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
    world = drawn_world(CHAINS)
    assert columns(world) == 23
    assert cured(world, SCENARIO) == 23 - 5 - 5


def test_at_worst_half_of_that_is_saved():
    expected, low = (cured(drawn_world(CHAINS), SCENARIO, case) for case in (Case.EXPECTED, Case.LOW))
    assert (expected, low) == (13, 18)


def test_a_product_between_two_pointwise_kernels_keeps_them_apart():
    world = drawn_world("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  |||.......|||.......
        gpu     ....###.......###...
        stream  .aaa...bbbaaa....bbb
    """)
    assert cured(world, SCENARIO) >= columns(world) - 3, "only the last and the first of two steps are neighbours"
