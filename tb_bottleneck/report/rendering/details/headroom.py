"""Formats what a run without a problem could still gain as plain text."""

from collections.abc import Iterator, Sequence

from tb_bottleneck.base.text import share_text
from tb_bottleneck.report.rendering.figures import factor_text, value_text
from tb_bottleneck.report.rendering.layout import Line, wrapped
from tb_bottleneck.schema import bottleneck_pb2 as pb


def lines_of(headroom: Sequence[pb.Headroom]) -> Iterator[str]:
    """Yields the lines of the section; none if there is nothing."""
    if not headroom:
        return
    yield ""
    yield Line("Where headroom remains", "strong")
    explained = {"situation"}
    for item in headroom:
        yield from wrapped(f"- {item.title}{bound_text(item)}", "  ")
        yield from wrapped(", ".join(f"{row.label}: {value_text(row)}" for row in item.evidence), "      ")
        if item.kind not in explained:
            yield from wrapped(item.summary, "      ")
        explained.add(item.kind)


def bound_text(item: pb.Headroom) -> str:
    """Returns the bound of an item as the end of its title."""
    if item.HasField("speedup"):
        return f": at most {factor_text(item.speedup)} as fast"
    if not item.HasField("share"):
        return ""
    beyond = " lies beyond it" if item.kind == "operator" else ""
    return f": {'' if beyond else 'at most '}{share_text(item.share)} of the time{beyond}"
