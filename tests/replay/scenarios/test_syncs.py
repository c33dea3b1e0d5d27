"""Waits taken out of drawn timelines, worked out by hand; times in columns."""

from drawn_worlds import columns, cured, drawn_world

from tb_bottleneck.replay.modified_graph import Case
from tb_bottleneck.replay.scenarios.syncs import EXPLICITS, READS, WAITS

SYNCED = """
    step    aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb
    launch  |.......|.......|.......|.......
    sync    .######..........######.........
    gpu     .######..######..######..######.
"""


def test_without_waits_the_device_is_the_limit():
    """Kernels of six columns follow one another from column 1 on; the last one ends at 25."""
    world = drawn_world(SYNCED)
    assert columns(world) == 32
    assert cured(world, WAITS) == 25
    assert cured(world, EXPLICITS) == 25, "no operator waits here: the program asks for it"


def test_waits_of_another_kind_stay():
    assert cured(drawn_world(SYNCED), READS) == 32


def test_at_worst_the_last_wait_of_each_step_stays():
    """There is one wait in each step, so nothing is gained."""
    assert cured(drawn_world(SYNCED), WAITS, Case.LOW) == 32


def test_a_wait_over_a_busy_device_brings_nothing():
    """The queue is never empty: the device is the limit with the wait and without it."""
    world = drawn_world("""
        step    aaaaaaaaaabbbbbbbbbb
        launch  |||......|||........
        sync    ....#........#......
        gpu     .aaabbbcccaaabbbccc.
    """)
    assert cured(world, WAITS) == columns(world)
