"""Repairs the JSON text of one event if strict parsers refuse the text.

Only defects that profilers are known to write are repaired: unescaped backslashes (Windows paths) and quotes in names
(pytorch/pytorch#146900), a bare `N/A`, `nan` or nothing instead of a value, trailing commas. Control characters, NaN
and Infinity need no repair: the lenient decoder accepts them. Every repair is one pass over the text.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

# In characters: a thousand times the length of a usual event. A longer text is not repaired.
MAX_REPAIRED = 1 << 20

# An unterminated string matches up to the end of the text. Otherwise the pattern would be tried again at each later
# quote, which takes quadratic time.
_TOKEN = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z))|([^\s"{}\[\],:]+)|:(?=\s*[,}\]])|,(?=\s*[}\]])', re.DOTALL)
_WORDS = frozenset({"true", "false", "null", "NaN", "Infinity", "-Infinity"})
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_STRAY_BACKSLASH = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)')
_MARK = re.compile(r'\\.|["{}\[\]:,]', re.DOTALL)
# What must follow a quote that ends a key, a value of an object or an item of an array.
_CLOSES = {
    "key": re.compile(r"\s*:"),
    "value": re.compile(r'\s*(?:\}|,\s*"\w[^"]*"\s*:)'),
    "item": re.compile(r'\s*(?:\]|,\s*["{\[\w-])'),
}

# A decimal number with up to 15 digits keeps all its digits in float64. Longer numbers (absolute times) stay text.
_SAFE_DIGITS = 15


def _float(text: str) -> float | str:
    return float(text) if len(text) <= _SAFE_DIGITS else text


DECODER = json.JSONDecoder(strict=False, parse_float=_float)
"""Accepts control characters, NaN and Infinity. A fraction that has too many digits for float64 is returned as text."""
METADATA_DECODER = json.JSONDecoder(strict=False)
"""The decoder for the keys next to the events: like DECODER, but all fractions become floats."""


def repaired(text: str, decoder: json.JSONDecoder = DECODER) -> dict[str, Any] | None:
    """Returns the object in `text`, which contains a single JSON object.

    Returns None if no repair makes `text` valid, or if `text` is longer than MAX_REPAIRED."""
    if len(text) > MAX_REPAIRED:
        return None
    for attempt in _attempts(text):
        try:
            value = decoder.decode(attempt)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else None
    return None


def _attempts(text: str) -> Iterator[str]:
    """Yields variants of `text` with more and more repairs: of values, then also of backslashes, then also of quotes.

    In each variant, values are repaired last, because parts of strings with stray quotes look like values."""
    yield _values(text)
    escaped = _backslashes(text)
    if escaped != text:
        yield escaped
        yield _values(escaped)
    quoted = _quotes(escaped)
    if quoted != escaped:
        yield quoted
        yield _values(quoted)


def _values(text: str) -> str:
    """Returns `text` with null in place of bare words and missing values, and without trailing commas. Strings are
    unchanged."""
    return _TOKEN.sub(_value, text)


def _value(match: re.Match[str]) -> str:
    string, word = match.groups()
    if string is not None:
        return string
    if word is not None:
        return word if word in _WORDS else _number(word)
    return ": null" if match[0] == ":" else ""


def _number(word: str) -> str:
    try:
        value = float(word)
    except ValueError:
        return "null"
    if not math.isfinite(value):
        return "null"
    # "0123" and ".5" are not JSON numbers; valid numbers keep all their digits.
    return word if _JSON_NUMBER.fullmatch(word) else repr(value)


def _backslashes(text: str) -> str:
    return _STRAY_BACKSLASH.sub(lambda match: match[0] if match[1] else r"\\", text)


def _quotes(text: str) -> str:
    """Escapes the quotes inside strings. A quote ends its string only if the text after the quote matches _CLOSES.

    This rule also applies to a quote after a backslash, as in `"C:\\dir\\"`. If such a quote ends the string, the
    backslash is escaped instead of the quote.
    """
    parts: list[str] = []
    open_brackets: list[str] = []
    position, inside, done = "key", False, 0
    for match in _MARK.finditer(text):
        mark = match[0]
        if inside and mark.endswith('"'):
            inside = not _CLOSES[position].match(text, match.end())
            if inside == (mark == '"'):
                parts += [text[done : match.start()], r"\"" if inside else r"\\" + '"']
                done = match.end()
        elif mark == '"':
            inside = True
        elif not inside and len(mark) == 1:
            position = _position_after(mark, open_brackets)
    return "".join(parts) + text[done:]


def _position_after(mark: str, open_brackets: list[str]) -> str:
    """Returns the kind of string that may follow `mark`, a structural character of JSON: "key", "value" or "item".

    Updates `open_brackets`, the stack of the brackets that are not closed yet."""
    if mark in "{[":
        open_brackets.append(mark)
    elif mark in "}]" and open_brackets:
        open_brackets.pop()
    if mark == ":":
        return "value"
    return "item" if open_brackets and open_brackets[-1] == "[" else "key"
