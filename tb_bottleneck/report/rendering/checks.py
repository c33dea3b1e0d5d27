"""Formats the judgements of the regimes: without them, silence would read as a clear verdict."""

from collections.abc import Iterator

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.text import share_text
from tb_bottleneck.schema import bottleneck_pb2 as pb


def lines_of(report: pb.Report) -> Iterator[str]:
    """Yields what was found besides the verdict, what could not be judged and why, and what is clear."""
    judged = [verdict for verdict in report.regimes if not (report.device.kind == "cpu" and _needs_device(verdict))]
    for verdict in judged:
        if verdict.status == "fires" and verdict.regime != report.verdict.regime:
            yield f"  - {verdict.title}, {share_text(verdict.share)}: {verdict.because}"
    for verdict in judged:
        if verdict.status in ("abstains", "broken"):
            yield f"  - {verdict.title}: {verdict.because}"
    for part in report.broken_parts:
        yield f"  - {part.because}"
    clear = [verdict.title for verdict in judged if verdict.status == "clear"]
    if clear:
        yield f"  - Clear: {', '.join(clear)}."


def _needs_device(verdict: pb.RegimeVerdict) -> bool:
    """Returns True for the regimes that no run on the CPU has; one that fires all the same is shown."""
    return verdict.status != "fires" and any(regime.needs_device for regime in Regime if regime == verdict.regime)
