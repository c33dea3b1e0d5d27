"""The stretches of a run as text: when it became slow, and why."""

from collections.abc import Iterator

from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.units import NS_PER_S, share_text

MOST_LINES = 20
_MINUTE, _HOUR = 60, 3600


def lines_of(report: pb.Report) -> Iterator[str]:
    """One line for each stretch, from the run's beginning on; nothing where one stretch is all there is."""
    if len(report.phases) < 2:
        return
    begin = report.phases[0].begin_ns
    width = max(len(stretch.title) for stretch in report.phases)
    for stretch in report.phases[:MOST_LINES]:
        lost = "" if stretch.severity == "none" else f"  {stretch.severity}"
        span = f"{_clock(stretch.begin_ns - begin)} to {_clock(stretch.end_ns - begin)}"
        yield f"  {span:>18}  {stretch.title:{width}}  {share_text(stretch.share):>6}{lost}"
    if len(report.phases) > MOST_LINES:
        yield f"  and {len(report.phases) - MOST_LINES} more"


def _clock(ns: float) -> str:
    """Hours, minutes and seconds, as 1:02:03 or 2:03."""
    seconds = round(ns / NS_PER_S)
    hours, minutes = seconds // _HOUR, seconds % _HOUR // _MINUTE
    return f"{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{minutes}:{seconds % 60:02}"
