"""Conversion of units and numbers to text, and the one way in which text that others wrote reaches an output.

Units are converted only here: from those of traces to those of the package, and from numbers to text. Time inside the
package is int64 nanoseconds. Traces give microseconds, as integers, floats or text.

Names in traces, file names, notes and error messages are untrusted. A terminal interprets control characters; a
bidirectional override changes what a reader sees; Markdown renders markup, links and mentions. JSON and HTML have
escapes of their own (`json_form.as_json`, Preact), so they keep every character.
"""

import json
import re
from collections.abc import Sequence
from decimal import Decimal

NS_PER_US = 1_000
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000


def us_to_ns(value: float | int | Decimal) -> int:
    """Converts microseconds to the nearest nanosecond.

    Integers and Decimals are exact. Raises ValueError or OverflowError for NaN and infinities.
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
    """Returns `share` (1 is all) in percent, with one decimal place if it is below 10 %, as in "41 %" or "3.2 %"."""
    percent = share * 100
    return f"{percent:.0f} %" if percent >= 9.95 or percent == 0 else f"{percent:.1f} %"


def bytes_text(count: float) -> str:
    """Returns a number of bytes as text, in B, kB, MB or GB (powers of 1000), as in "53.1 MB"."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(count) >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


def rate_text(bytes_per_s: float) -> str:
    """Returns a bandwidth as text, in B/s, kB/s, MB/s or GB/s (powers of 1000), as in "12.6 GB/s"."""
    return f"{bytes_text(bytes_per_s)}/s"


_MARKUP = re.compile(r"[\\`*_{}\[\]<>#|~!&]")
# What GitHub and others turn into links or notifications even if it is escaped: @name, #12, URLs, www.
_LIVE = re.compile(r"@(?=\w)|#(?=\d)|(?<=:)(?=//)|(?<=www)(?=\.)|(?<=GH)(?=-\d)", re.IGNORECASE)
_BREAK = "\u200b"  # zero-width space


def one_line(text: object, longest: int | None = None) -> str:
    """Returns `text` on one line, without characters that control a terminal or the direction of writing.

    Text with more than `longest` characters is cut off at the end. None means no limit.
    """
    shown = str(text)
    if longest is not None and len(shown) > longest:
        shown = shown[: longest - 1] + "…"
    if shown.isprintable():
        return shown
    return "".join(each if each.isprintable() else " " if each.isspace() else "" for each in shown)


def quoted(text: object, longest: int) -> str:
    """Returns untrusted text on one line between double quotes, with at most `longest` characters between them.

    Quotes and backslashes in the text are escaped as in JSON, so that the reader sees where the text ends.
    """
    shown = one_line(text, longest)
    while len(escaped := json.dumps(shown, ensure_ascii=False)) > longest + 2:
        shown = f"{shown[:-2]}…"
    return escaped


def markdown(text: object) -> str:
    """Returns `text` as Markdown that shows the text literally, without markup, links or mentions."""
    return _MARKUP.sub(r"\\\g<0>", _LIVE.sub(lambda match: match[0] + _BREAK, one_line(text)))


MAX_NAMED_RANKS = 6


def ranks_text(ranks: Sequence[int]) -> str:
    """Returns the sorted `ranks` as text: "rank 3", "ranks 0, 1 and 5", "ranks 8 to 15" or "12 ranks (0, 7, ...)"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    first, last = ranks[0], ranks[-1]
    if len(ranks) > 2 and list(ranks) == list(range(first, last + 1)):
        return f"ranks {first} to {last}"
    if len(ranks) > MAX_NAMED_RANKS:
        return f"{len(ranks)} ranks ({first}, {ranks[1]}, ...)"
    return "ranks " + ", ".join(map(str, ranks[:-1])) + f" and {last}"
