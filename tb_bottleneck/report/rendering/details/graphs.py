"""Formats the replays of captured graphs as text."""

from collections.abc import Iterator

from tb_bottleneck.base.text import duration_text
from tb_bottleneck.report.rendering.details.compilation import PER_STEP
from tb_bottleneck.report.rendering.figures import count_text, place_text
from tb_bottleneck.report.rendering.layout import Line, wrapped
from tb_bottleneck.schema import bottleneck_pb2 as pb

_MIN_NS = 1_000


def lines_of(replays: pb.GraphReplays, per: str = PER_STEP) -> Iterator[str]:
    """Yields the lines of the part; `per` says what its numbers refer to."""
    yield Line("CUDA graphs", "strong")
    outside = f"outside of them, {count_text(replays.outside_operations)} operations run for "
    outside += f"{duration_text(replays.outside_ns)} {per}"
    plural = "" if replays.launches == 1 else "es"
    yield from wrapped(f"{count_text(replays.launches)} launch{plural} {per}; {outside}.")
    for graph in replays.graphs:
        yield from wrapped(f"- {count_text(graph.operations)} operations{_graph(graph, per)}", "  ")
    names = [
        f"{entry.name} ({count_text(entry.calls)}x, {duration_text(entry.ns_per_step)})" for entry in replays.outside
    ]
    if names:
        yield from wrapped(f"- outside of the graphs, {per}: {', '.join(names)}", "  ")


def _graph(graph: pb.ReplayedGraph, per: str) -> str:
    place = f" in {place_text(graph.place)}" if graph.HasField("place") else ""
    idle = f" ({duration_text(graph.idle_ns)} of it idle)" if graph.idle_ns >= _MIN_NS else ""
    before = f", after {duration_text(graph.idle_before_ns)} without work" if graph.HasField("idle_before_ns") else ""
    launched = f"{place}, {count_text(graph.launches)} {per}"
    return f"{launched}: {duration_text(graph.device_ns)}{idle}{before}; the call takes {duration_text(graph.call_ns)}"
