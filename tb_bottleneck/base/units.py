"""Conversion of units, and of numbers to text.

Units are converted only here: from those of traces to those of the package, and from numbers to text. Time inside the
package is int64 nanoseconds. Traces give microseconds, as integers, floats or text.

Makes text that others wrote safe to show in a terminal, which gets such text only in this form.

Names in traces, file names, notes and error messages are untrusted. A terminal interprets control characters; a
bidirectional override changes what a reader sees. JSON and HTML have escapes of their own (`json_form.as_json`,
Preact), so they keep every character.
"""

import json
from collections.abc import Sequence
from decimal import Decimal


def one_line(text: object, longest: int | None = None) -> str:
    """Returns `text` on one line, without characters that control a terminal or the direction of writing. Line breaks
    and tabs become spaces.

    Text with more than `longest` characters is cut off at the end and gets "…" as its last character. None means no
    limit.
    """
    shown = str(text)
    if longest is not None and len(shown) > longest:
        shown = shown[: longest - 1] + "…"
    if shown.isprintable():
        return shown
    return "".join(each if each.isprintable() else " " if each.isspace() else "" for each in shown)


def quoted(text: object, longest: int) -> str:
    """Returns the untrusted `text` on one line between double quotes, with at most `longest` characters between them.

    Quotes and backslashes in the text are escaped as in JSON, so that the reader sees where the text ends.
    """
    shown = one_line(text, longest)
    while len(escaped := json.dumps(shown, ensure_ascii=False)) > longest + 2:
        shown = f"{shown[:-2]}…"
    return escaped


NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


def us_to_ns(value: float | int | Decimal) -> int:
    """Converts `value` in microseconds to ns, rounded to an integer.

    Integers and Decimals are converted exactly before rounding. Raises ValueError or OverflowError for NaN and
    infinities.
    """
    if isinstance(value, int):
        return value * NS_PER_US
    return int((value * NS_PER_US).to_integral_value()) if isinstance(value, Decimal) else round(value * NS_PER_US)


def duration_text(ns: float) -> str:
    """Returns the duration `ns` with about three digits, in s, ms, µs or ns, as in "53.0 ms"."""
    for unit, size in (("s", NS_PER_S), ("ms", NS_PER_MS), ("µs", NS_PER_US)):
        if abs(ns) >= size:
            number = ns / size
            digits = 0 if abs(number) >= 100 else 1 if abs(number) >= 10 else 2
            return f"{number:.{digits}f} {unit}"
    return f"{ns:.0f} ns"


def share_text(share: float) -> str:
    """Returns `share` (1 is all) in percent, as in "41 %" or "3.2 %". Values from 0 to 9.95 % have one decimal place, 0
    has none."""
    percent = share * 100
    return f"{percent:.0f} %" if percent >= 9.95 or percent == 0 else f"{percent:.1f} %"


def bytes_text(count: float) -> str:
    """Returns `count` bytes as text, in B, kB, MB or GB (powers of 1000), as in "53.1 MB"."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(count) >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


def rate_text(bytes_per_s: float) -> str:
    """Returns a bandwidth as text, in B/s, kB/s, MB/s or GB/s (powers of 1000), as in "12.6 GB/s"."""
    return f"{bytes_text(bytes_per_s)}/s"


MAX_NAMED_RANKS = 6


def ranks_text(ranks: Sequence[int]) -> str:
    """Returns the sorted `ranks` as text: "rank 3", "ranks 0, 1 and 5", "ranks 8 to 15" or "12 ranks (0, 7, ...)".
    `ranks` must not be empty. The last form is for more than MAX_NAMED_RANKS ranks that are not consecutive."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    first, last = ranks[0], ranks[-1]
    if len(ranks) > 2 and list(ranks) == list(range(first, last + 1)):
        return f"ranks {first} to {last}"
    if len(ranks) > MAX_NAMED_RANKS:
        return f"{len(ranks)} ranks ({first}, {ranks[1]}, ...)"
    return "ranks " + ", ".join(map(str, ranks[:-1])) + f" and {last}"
