"""Formats the figures of a report as text in their units.

For the JSON form of a report, see json_form.py.
"""

from collections.abc import Callable, Sequence

from tb_bottleneck.base.units import bytes_text, duration_text, rate_text, share_text
from tb_bottleneck.schema import bottleneck_pb2 as pb

_SHOWN: dict[str, Callable[[float], str]] = {
    "ns": duration_text,
    "share": share_text,
    "bytes": bytes_text,
    "bytes_per_s": rate_text,
}
# From this value on, the decimal places of a count are noise: 3,422.4 operators are shown as 3,422.
WHOLE_FROM = 100.0
# Simulated gains have an error of some percent (tests/measurements/GAINS.md): 6.59x is shown as 6.6x, and 14.7x as 15x.
FEW_DIGITS_FROM, WHOLE_FACTOR_FROM = 1.995, 9.95


def value_text(row: pb.Evidence) -> str:
    """Returns the value of `row` in its unit, as text; for a row without a value, the row's own text."""
    if not row.HasField("value"):
        return row.text
    shown = _SHOWN.get(row.unit)
    return shown(row.value) if shown is not None else count_text(row.value)


def occurrence_text(row: pb.Evidence, window_begin: float) -> str:
    """Returns when a typical occurrence begins and how long it takes, as the end of a line; empty if this is not known.
    `window_begin` is the start of the window in ns, relative to which the begin is stated."""
    if not (row.HasField("begin_ns") and row.HasField("end_ns")):
        return ""
    after, length = row.begin_ns - window_begin, duration_text(row.end_ns - row.begin_ns)
    return f", for example {duration_text(abs(after))} {'into' if after >= 0 else 'before'} the window, for {length}"


def place_text(place: pb.Place) -> str:
    """Returns a place in the program as `file:line function`, or the name of the module or record_function block."""
    if not place.file and place.module and not place.block:
        return f"module {place.module}"
    if not place.file:
        return f"block {place.block or place.function}"
    line = f":{place.line}" if place.line else ""
    return f"{place.file}{line} {place.function}"


def lines_text(place: pb.Place) -> str:
    """Returns a text about the lines with the largest cost in `place`: ", most in line 4 (41%), then lines 3 (30%), 7
    (20%)"."""
    most = f", most in line {place.hottest_line} ({share_text(place.hottest_share)})" if place.hottest_line else ""
    others = ", ".join(f"{other.line} ({share_text(other.share)})" for other in place.other_lines)
    return f"{most}, then line{'s' if len(place.other_lines) > 1 else ''} {others}" if others else most


def count_text(count: float) -> str:
    """Returns a count, with one decimal place if it is small: "2.4" or "3,422"."""
    return f"{count:,.0f}" if abs(count) >= WHOLE_FROM else f"{count:,.1f}".removesuffix(".0")


def factor_text(factor: float, digits: int | None = None) -> str:
    """Returns a speed-up as text: "1.24x", "6.6x", "15x". `digits` is the number of decimal places below
    WHOLE_FACTOR_FROM; by default, as many as the accuracy of a simulation supports."""
    supported = 1 if factor >= FEW_DIGITS_FROM else 2
    return f"{factor:.{0 if factor >= WHOLE_FACTOR_FROM else digits or supported}f}x"


def bounds_text(low: float, high: float) -> str:
    """Returns both bounds of a speed-up with the digits of the higher one: "1.2 to 2.1"."""
    digits = 1 if high >= FEW_DIGITS_FROM else 2
    return " to ".join(factor_text(bound, digits).removesuffix("x") for bound in (low, high))


# From this ratio high / low on, an interval has no middle that is worth stating.
VAGUE = 3.0


def gain_range_text(expected: float, low: float, high: float) -> tuple[str, str]:
    """Returns a predicted speed-up and its bounds as texts: ("1.24x", "1.1 to 1.3"). If the interval is too wide for an
    expected value, returns ("1.8 to 5.7x", "measure it")."""
    bounds = bounds_text(low, high)
    return (f"{bounds}x", "measure it") if high > VAGUE * low else (factor_text(expected), bounds)


def small_share_text(share: float) -> str:
    """Returns `share` (0 to 1) as a percentage, or "less than 0.1 %"."""
    return share_text(share) if share >= 0.001 else "less than 0.1 %"


def ranges_text(ranks: Sequence[int]) -> str:
    """Returns the sorted `ranks` as text with ranges: "rank 3" or "ranks 0-3, 5"."""
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and rank == parts[-1][1] + 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    shown = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts[:20])
    more = ", ..." if len(parts) > 20 else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}{more}"
