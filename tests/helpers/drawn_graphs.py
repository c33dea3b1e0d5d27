"""Drawn timelines as graphs that scenarios modify; times in columns of the drawing."""

from helpers.draw import drawn_trace

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, unmodified_graph
from tb_bottleneck.replay.recorded_graph import RecordedGraph
from tb_bottleneck.replay.scenario import Scenario
from tb_bottleneck.trace.steps import find_steps

UNIT_US = 100.0
UNIT_NS = 100_000


def drawn_recording(drawing: str, unit_us: float = UNIT_US, **header: object) -> Recording:
    """Returns the drawing as a recording with its steps."""
    trace = drawn_trace(drawing, unit_us, **header)
    steps = find_steps(trace)
    assert steps is not None
    return Recording(trace, steps)


def drawn_graph(drawing: str, **header: object) -> ModifiedGraph:
    """Returns the unmodified graph of the drawing."""
    return unmodified_graph(RecordedGraph(drawn_recording(drawing, **header)))


def columns(graph: ModifiedGraph) -> float:
    """Returns the window in columns, rounded to a hundredth: calls that need not wait still take 4 us."""
    return round(graph.window() / UNIT_NS, 2)


def after_fix(graph: ModifiedGraph, scenario: Scenario, estimate: Estimate = Estimate.EXPECTED) -> float:
    """Returns the window in columns after the scenario's fix."""
    fixed = scenario.apply(graph, estimate)
    assert fixed is not None
    return columns(fixed)
