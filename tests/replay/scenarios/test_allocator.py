"""Driver allocations taken out of a drawn timeline; times in columns."""

from drawn_worlds import columns, cured, drawn_world

from tb_bottleneck.replay.modified_graph import Case
from tb_bottleneck.replay.scenarios.allocator import SCENARIO

ALLOCATING = """
    step    aaaaaaaaaabbbbbbbbbb
    malloc  ..####......####....
    launch  ......|.........|...
    gpu     .......###.......###
"""


def test_allocations_take_no_time():
    world = drawn_world(ALLOCATING)
    assert columns(world) == 20
    assert cured(world, SCENARIO) == 12
    assert cured(world, SCENARIO, Case.LOW) == 16, "at worst half of it stays"
