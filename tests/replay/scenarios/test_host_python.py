"""Python taken out of a drawn timeline; times in columns of 1 ms, since shorter pauses are dispatching."""

from drawn_worlds import drawn_recording

from tb_bottleneck.replay.modified_graph import Case, Facts, recorded_world
from tb_bottleneck.replay.scenarios.host_python import SCENARIO

PYTHON = """
    step    aaaaaaaaaabbbbbbbbbb
    op      ..........#.........
    launch  ......|.........|...
    gpu     .......###.......###
"""


def milliseconds(case: Case) -> float:
    world = recorded_world(Facts(drawn_recording(PYTHON, unit_us=1000.0)))
    after = SCENARIO.cure(world, case)
    return round(after.window() / 1e6, 1)


def test_pauses_outside_operators_go():
    """Per step: six columns before the launch (five behind the operator), three behind it."""
    assert milliseconds(Case.HIGH) == milliseconds(Case.EXPECTED)
    assert milliseconds(Case.EXPECTED) < 10 < milliseconds(Case.LOW) < 20
