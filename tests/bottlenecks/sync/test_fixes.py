"""Tests of the scenarios of waits and copies on drawn timelines, worked out by hand; times in columns.

A drawn copy moves 2^20 bytes in a column of 100 us or more; an A100's link moves them in 0.44 columns.
"""

import pytest
from helpers.drawn_graphs import after_fix, columns, drawn_graph

from tb_bottleneck.bottlenecks.sync.fixes import COMBINED, EXPLICITS, SCALAR_READS, WAITS
from tb_bottleneck.bottlenecks.transfer import fixes as copies
from tb_bottleneck.replay.modified_graph import Estimate

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


# The host is far ahead: all is launched in four columns.
COPIED = """
    step    aabb....................
    launch  ||||....................
    h2d     .#####......#####.......
    gpu     ......######.....######.
"""
LINK = (1 << 20) / 24 / 100_000  # columns that a copy of 2^20 bytes takes at 24 bytes per ns


def test_a_pageable_copy_becomes_as_fast_as_a_pinned_one():
    """Copies shrink from five columns to 0.44. The first one is over before the kernel behind it can begin:

    that one was launched at column 1, and a launch takes a column. So kernels run from 2 to 8, and from 8.44 to 14.44.
    """
    graph = drawn_graph(COPIED)
    assert columns(graph) == 23
    assert after_fix(graph, copies.PINNED_COPIES) == pytest.approx(14 + LINK, abs=0.01)


def test_at_worst_the_link_is_slower():
    expected, low = (
        after_fix(drawn_graph(COPIED), copies.PINNED_COPIES, estimate) for estimate in (Estimate.EXPECTED, Estimate.LOW)
    )
    assert low > expected


def test_a_copy_on_a_stream_of_its_own_takes_no_time_of_the_kernels():
    """Both kernels follow one another from column 2 on, when the first one's launch is through."""
    assert after_fix(drawn_graph(COPIED), copies.PREFETCHED_COPIES) == 14


def test_prefetched_copies_still_share_the_link():
    """Two copies of eight columns each, and kernels of one: the link is busy for sixteen."""
    graph = drawn_graph("""
        step    aabb................
        launch  ||||................
        h2d     .########.########..
        gpu     .........#........#.
    """)
    assert after_fix(graph, copies.PREFETCHED_COPIES) == 16


def test_a_healthy_link_shortens_every_large_copy():
    assert after_fix(drawn_graph(COPIED), copies.HEALTHY_LINK) == pytest.approx(14 + LINK, abs=0.01)


def test_what_a_link_reaches_is_not_guessed_of_an_unknown_device():
    graph = drawn_graph(COPIED, deviceProperties=[{"id": 0, "name": "Somebody's own", "numSms": 8}])
    assert copies.HEALTHY_LINK.apply(graph, Estimate.EXPECTED) is None
