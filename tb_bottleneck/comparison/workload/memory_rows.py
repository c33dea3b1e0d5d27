"""The peaks of the memory of two runs, by category."""

from tb_bottleneck.schema import bottleneck_pb2 as report_pb
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.units import bytes_text

MIN_DIFFERENCE = 0.02
"""Share of the larger peak from which a difference is listed."""


def memory_rows(a: report_pb.Report, b: report_pb.Report) -> list[pb.ContextRow]:
    """Returns the peak and the categories that differ, the largest difference first; nothing if a peak is unknown."""
    peaks = a.memory.peak_bytes, b.memory.peak_bytes
    if not all(peaks):
        return []
    least = MIN_DIFFERENCE * max(peaks)
    parts = [{part.kind: part for part in report.memory.parts} for report in (a, b)]
    rows = []
    for kind in dict.fromkeys([*parts[0], *parts[1]]):
        first, second = (side[kind].bytes if kind in side else 0.0 for side in parts)
        title = (parts[0].get(kind) or parts[1][kind]).title
        rows.append((abs(second - first), _row(f"memory_{kind}", f"memory: {title.lower()}", first, second)))
    differing = [row for difference, row in sorted(rows, key=lambda pair: -pair[0]) if difference >= least]
    whole = [_row("memory_peak", "memory at the peak", *peaks)] if abs(peaks[1] - peaks[0]) >= least else []
    return whole + differing


def _row(key: str, title: str, a: float, b: float) -> pb.ContextRow:
    return pb.ContextRow(key=key, title=title, a=bytes_text(a), b=bytes_text(b))
