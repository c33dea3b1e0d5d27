"""Worlds: what bounds a window from below, whatever the items say."""

from drawn_worlds import UNIT_NS, columns, drawn_world

BUSY = """
    step    aaaaaaaaaabbbbbbbbbb
    launch  |.........|.........
    gpu     .######....######...
"""


def test_a_window_is_never_shorter_than_its_kernels():
    """Even a host that needs no time leaves twice six columns of work."""
    world = drawn_world(BUSY)
    hasty = world.but(gap=world.items.gap * 0, cost=world.items.cost * 0)
    assert columns(hasty) >= 12


def test_a_floor_holds_and_only_the_highest_counts():
    world = drawn_world(BUSY)
    assert columns(world.at_least(30 * UNIT_NS).at_least(25 * UNIT_NS)) == 30
    assert columns(world.at_least(UNIT_NS)) == 20


def test_a_larger_batch_is_counted_per_sample():
    world = drawn_world(BUSY)
    assert columns(world.with_batch(2)) == columns(world) / 2
