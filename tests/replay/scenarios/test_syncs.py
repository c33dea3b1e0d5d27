"""Waits taken out of drawn timelines, worked out by hand; times in columns."""

from helpers.drawn_graphs import after_fix, columns, drawn_graph

from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.replay.scenarios.waits import COMBINED, EXPLICITS, SCALAR_READS, WAITS

SYNCED = """
    step    aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb
    launch  |.......|.......|.......|.......
    sync    .######..........######.........
    gpu     .######..######..######..######.
"""


def test_without_waits_the_device_is_the_limit():
    """Kernels of six columns follow one another from column 1 on; the last one ends at 25."""
    graph = drawn_graph(SYNCED)
    assert columns(graph) == 32
    assert after_fix(graph, WAITS) == 25
    assert after_fix(graph, EXPLICITS) == 25, "no operator waits here: the program asks for it"


def test_waits_of_another_kind_stay():
    assert after_fix(drawn_graph(SYNCED), SCALAR_READS) == 32


def test_at_worst_the_last_wait_of_each_step_stays():
    """There is one wait in each step, so nothing is gained."""
    assert after_fix(drawn_graph(SYNCED), WAITS, Estimate.LOW) == 32


def test_a_wait_over_a_busy_device_brings_nothing():
    """The queue is never empty: the device is the limit with the wait and without it."""
    graph = drawn_graph("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  |||......|||........
        sync    ....#........#......
        gpu     .aaabbbcccaaabbbccc.
    """)
    assert after_fix(graph, WAITS) == columns(graph)


# A step of 40 columns: each wait ends with its kernel, so the device is idle until the next launch. One wait in ten
# columns, four in each step.
MANY_WAITS = """
    step    aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
    launch  |.........|.........|.........|.........|.........|.........|.........|.........
    sync    .######....######....######....######....######....######....######....######...
    gpu     .######....######....######....######....######....######....######....######...
"""


def test_a_rewrite_of_waits_of_all_kinds_leaves_some_of_them():
    """Of four waits in each step, the last one stays, at worst the last two."""
    graph = drawn_graph(MANY_WAITS)
    without = after_fix(graph, WAITS)
    assert after_fix(graph, COMBINED, Estimate.HIGH) == without
    assert without < after_fix(graph, COMBINED) < after_fix(graph, COMBINED, Estimate.LOW) < columns(graph)
