"""Formats the account of a whole run as plain text."""

from collections.abc import Iterator

from tb_bottleneck.base.text import duration_text, share_text
from tb_bottleneck.report.rendering.layout import Line
from tb_bottleneck.schema import bottleneck_pb2 as pb

LEAST = 0.005
_BAR = 25


def lines_of(run: pb.RunTime) -> Iterator[str]:
    """Yields one line for each part of at least LEAST of the time, the largest first."""
    parts = sorted((part for part in run.parts if part.share >= LEAST), key=lambda part: -part.share)
    if not parts:
        return
    yield Line(f"The whole run, {duration_text(run.elapsed_ns)}", "strong")
    width = max(len(part.title) for part in parts)
    for part in parts:
        bar = "█" * max(round(part.share * _BAR), 1)
        yield f"  {part.title:{width}}  {share_text(part.share):>6}  {duration_text(part.ns):>9}  {bar}"
