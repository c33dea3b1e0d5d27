"""Formats a run over time as plain text: its phases, and where its time went."""

from collections.abc import Iterator

from tb_bottleneck.base.units import NS_PER_S, duration_text, share_text
from tb_bottleneck.report.rendering.layout import Line
from tb_bottleneck.schema import bottleneck_pb2 as pb

MAX_LINES = 20
_MINUTE, _HOUR = 60, 3600


def phase_lines(report: pb.Report) -> Iterator[str]:
    """Yields one line for each phase, with its times from the start of the first phase, its regime, its share and its
    severity. At most MAX_LINES phases are shown.

    Yields nothing if there is only one phase.
    """
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
    """Formats a time in ns as hours, minutes and seconds: 1:02:03 or 2:03."""
    seconds = round(ns / NS_PER_S)
    hours, minutes = seconds // _HOUR, seconds % _HOUR // _MINUTE
    return f"{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{minutes}:{seconds % 60:02}"


LEAST = 0.005
_BAR = 25


def run_time_lines(run: pb.RunTime) -> Iterator[str]:
    """Yields one line for each part of the run's wall time with at least the fraction LEAST, the largest part first."""
    parts = sorted((part for part in run.parts if part.share >= LEAST), key=lambda part: -part.share)
    if not parts:
        return
    yield Line(f"The whole run, {duration_text(run.elapsed_ns)}", "strong")
    width = max(len(part.title) for part in parts)
    for part in parts:
        bar = "█" * max(round(part.share * _BAR), 1)
        yield f"  {part.title:{width}}  {share_text(part.share):>6}  {duration_text(part.ns):>9}  {bar}"
