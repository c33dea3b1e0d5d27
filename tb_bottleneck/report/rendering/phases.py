"""Formats the phases of a run: when it became slow, and why."""

from collections.abc import Iterator

from tb_bottleneck.base.text import NS_PER_S, share_text
from tb_bottleneck.schema import bottleneck_pb2 as pb

MAX_LINES = 20
_MINUTE, _HOUR = 60, 3600


def lines_of(report: pb.Report) -> Iterator[str]:
    """Yields one line for each phase, with times from the start of the run; nothing if there is only one phase."""
    if len(report.phases) < 2:
        return
    begin = report.phases[0].begin_ns
    width = max(len(phase.title) for phase in report.phases)
    for phase in report.phases[:MAX_LINES]:
        severity = "" if phase.severity == "none" else f"  {phase.severity}"
        interval = f"{_clock(phase.begin_ns - begin)} to {_clock(phase.end_ns - begin)}"
        yield f"  {interval:>18}  {phase.title:{width}}  {share_text(phase.share):>6}{severity}"
    if len(report.phases) > MAX_LINES:
        yield f"  and {len(report.phases) - MAX_LINES} more"


def _clock(ns: float) -> str:
    """Formats a time as hours, minutes and seconds: 1:02:03 or 2:03."""
    seconds = round(ns / NS_PER_S)
    hours, minutes = seconds // _HOUR, seconds % _HOUR // _MINUTE
    return f"{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{minutes}:{seconds % 60:02}"
