"""Formats the parts of a step as text."""

from collections.abc import Iterator, Sequence

from tb_bottleneck.base.text import share_text
from tb_bottleneck.report.rendering.figures import place_text
from tb_bottleneck.report.rendering.layout import Line, wrapped
from tb_bottleneck.schema import bottleneck_pb2 as pb

TITLE = "Parts of the step, by the functions that the loop calls"


def lines_of(parts: Sequence[pb.StepPart]) -> Iterator[str]:
    """Yields one paragraph for each part."""
    yield Line(TITLE, "strong")
    for part in parts:
        of = ", ".join(f"{row.title} {share_text(row.share)}" for row in part.account)
        name = place_text(part.place) if part.HasField("place") else "the loop itself"
        yield from wrapped(f"- {name}: {share_text(part.share)} of the step{f': {of}' if of else ''}", "  ")
