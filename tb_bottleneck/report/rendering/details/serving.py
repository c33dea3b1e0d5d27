"""Formats the steps of an inference server as text."""

from collections.abc import Iterator, Sequence

from tb_bottleneck.base.text import duration_text, share_text
from tb_bottleneck.report.rendering.layout import Line
from tb_bottleneck.schema import bottleneck_pb2 as pb


def lines_of(serving: pb.Serving) -> Iterator[str]:
    """Yields the lines of the part: the kinds, and the shapes if they tell more."""
    yield Line(f"Steps of the inference server ({serving.server})", "strong")
    rows = [("kind", "steps", "share", "host", "device", "pause before", "requests and tokens")]
    if len(serving.shapes) > len(serving.kinds):
        rows += [_row(steps, "") for steps in serving.kinds]
    rows += [_row(steps, _work(steps)) for steps in serving.shapes]
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    for row in rows:
        cells = (text.rjust(width) if column else text.ljust(width) for column, (text, width) in _cells(row, widths))
        yield f"  {'  '.join(cells)}  {row[6]}".rstrip()


def _cells(row: Sequence[str], widths: Sequence[int]) -> Iterator[tuple[int, tuple[str, int]]]:
    return enumerate(zip(row, widths, strict=False))


def _row(steps: pb.ServingSteps, work: str) -> tuple[str, str, str, str, str, str, str]:
    device = duration_text(steps.device_ns) if steps.HasField("device_ns") else ""
    pause = duration_text(steps.pause_ns) if steps.HasField("pause_ns") else ""
    return (
        steps.kind,
        f"{steps.count:,}",
        share_text(steps.share),
        duration_text(steps.step_ns),
        device,
        pause,
        work,
    )


def _work(steps: pb.ServingSteps) -> str:
    parts = []
    for name in ("prefill", "decode"):
        requests, tokens = getattr(steps, f"{name}_requests"), getattr(steps, f"{name}_tokens")
        if requests or tokens:
            known = f", {tokens:,.0f} tokens" if steps.HasField(f"{name}_tokens") else ""
            parts.append(f"{name} {requests:,.0f} request{'s' if requests != 1 else ''}{known}")
    return "; ".join(parts)
