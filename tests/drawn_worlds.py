"""Drawn timelines as worlds that scenarios can cure; times in columns of the drawing."""

from draw import drawn_trace

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.replay.modified_graph import Case, Facts, World, recorded_world
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.steps import find_steps

UNIT_US = 100.0
UNIT_NS = 100_000


def drawn_recording(drawing: str, unit_us: float = UNIT_US, **header: object) -> Recording:
    """The drawing with its steps."""
    trace = drawn_trace(drawing, unit_us, **header)
    steps = find_steps(trace)
    assert steps is not None
    return Recording(trace, steps)


def drawn_world(drawing: str, **header: object) -> World:
    """The drawing as it was recorded."""
    return recorded_world(Facts(drawn_recording(drawing, **header)))


def columns(world: World) -> float:
    """The window in columns, rounded to a hundredth: calls that need not wait still take 4 us."""
    return round(world.window() / UNIT_NS, 2)


def cured(world: World, scenario: Scenario, case: Case = Case.EXPECTED) -> float:
    """The window in columns after the cure."""
    after = scenario.cure(world, case)
    assert after is not None
    return columns(after)
