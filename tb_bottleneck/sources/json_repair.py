"""Mends one event's JSON text that strict parsers refuse, for the defects that profilers are known to write.

Known: unescaped backslashes (Windows paths) and quotes in names (pytorch/pytorch#146900), bare `N/A`, `nan` or nothing
where a value belongs, trailing commas. Control characters, NaN and Infinity need no mending: the lenient decoder takes
them. Every mend is one pass over the text, whatever the text holds.
"""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

# A thousand times the usual event; a larger one is not worth the work.
MAX_MENDED = 1 << 20

# A string without end goes to the end of the text: tried anew at each quote, it would take quadratic time.
_TOKEN = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z))|([^\s"{}\[\],:]+)|:(?=\s*[,}\]])|,(?=\s*[}\]])', re.DOTALL)
_WORDS = frozenset({"true", "false", "null", "NaN", "Infinity", "-Infinity"})
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_STRAY_BACKSLASH = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)')
_MARK = re.compile(r'\\.|["{}\[\]:,]', re.DOTALL)
# What has to follow a quote for it to be the end of a key, of a member's value, of an array's item.
_CLOSES = {
    "key": re.compile(r"\s*:"),
    "value": re.compile(r'\s*(?:\}|,\s*"\w[^"]*"\s*:)'),
    "item": re.compile(r'\s*(?:\]|,\s*["{\[\w-])'),
}

# Decimal numbers of up to 15 digits survive float64; longer ones (absolute times) stay text.
_SAFE_DIGITS = 15


def _float(text: str) -> float | str:
    return float(text) if len(text) <= _SAFE_DIGITS else text


DECODER = json.JSONDecoder(strict=False, parse_float=_float)
"""Takes control characters, NaN and Infinity; leaves fractions that float64 cannot hold as their text."""


def repaired(text: str) -> dict[str, Any] | None:
    """The event in `text`, which holds one object and nothing else; None where no known mend makes it one."""
    if len(text) > MAX_MENDED:
        return None
    for attempt in _attempts(text):
        try:
            found = DECODER.decode(attempt)
        except (ValueError, RecursionError):
            continue
        return found if isinstance(found, dict) else None
    return None


def _attempts(text: str) -> Iterator[str]:
    """The text mended in more and more ways; values apart, as stray quotes make words of strings look like values."""
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
    """Bare words and nothing become null, trailing commas go; strings stay as they are."""
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
    # "0123" and ".5" are no JSON numbers; what is one keeps all its digits.
    return word if _JSON_NUMBER.fullmatch(word) else repr(value)


def _backslashes(text: str) -> str:
    return _STRAY_BACKSLASH.sub(lambda match: match[0] if match[1] else r"\\", text)


def _quotes(text: str) -> str:
    """Escapes each quote inside a string that is not followed by what has to follow the string's end.

    One that is, but stands behind a backslash, ends the string: `"C:\\dir\\"`.
    """
    parts: list[str] = []
    open_brackets: list[str] = []
    place, inside, done = "key", False, 0
    for match in _MARK.finditer(text):
        mark = match[0]
        if inside and mark.endswith('"'):
            inside = not _CLOSES[place].match(text, match.end())
            if inside == (mark == '"'):
                parts += [text[done : match.start()], r"\"" if inside else r"\\" + '"']
                done = match.end()
        elif mark == '"':
            inside = True
        elif not inside and len(mark) == 1:
            place = _place_after(mark, open_brackets)
    return "".join(parts) + text[done:]


def _place_after(mark: str, open_brackets: list[str]) -> str:
    """Which kind of string may follow a structural character. Keeps the stack of open brackets."""
    if mark in "{[":
        open_brackets.append(mark)
    elif mark in "}]" and open_brackets:
        open_brackets.pop()
    if mark == ":":
        return "value"
    return "item" if open_brackets and open_brackets[-1] == "[" else "key"
