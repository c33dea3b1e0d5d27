"""Mends one event's JSON text that strict parsers refuse, for the defects that profilers are known to write.

Known: unescaped backslashes (Windows paths) and quotes in names (pytorch/pytorch#146900), bare `N/A` or nothing where a
value belongs, trailing commas. Control characters, NaN and Infinity need no mending: the lenient decoder takes them.
"""

import json
import re
from typing import Any

_NO_VALUE = re.compile(r':\s*(?:N/A)?\s*(?=[,}\]])')
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_STRAY_BACKSLASH = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
# A string value up to the quote that is followed by what ends a member: a comma and the next key, or a closing brace.
_STRING_VALUE = re.compile(r'("\w[\w ]*"\s*:\s*")(.*?)("\s*(?:,\s*"\w[^"]*"\s*:|\}))', re.DOTALL)
_BARE_QUOTE = re.compile(r'(?<!\\)"')

_decoder = json.JSONDecoder(strict=False)


def repaired(text: str) -> dict[str, Any] | None:
    """The event in `text`, which holds one object and nothing else; None where no known mend makes it one."""
    for mend in (_values, _backslashes, _quotes):
        text = mend(text)
        try:
            found = _decoder.decode(text)
        except (ValueError, RecursionError):
            continue
        return found if isinstance(found, dict) else None
    return None


def _values(text: str) -> str:
    return _TRAILING_COMMA.sub(r"\1", _NO_VALUE.sub(": null", text))


def _backslashes(text: str) -> str:
    return _STRAY_BACKSLASH.sub(r"\\\\", text)


def _quotes(text: str) -> str:
    return _STRING_VALUE.sub(lambda m: m[1] + _BARE_QUOTE.sub(r'\\"', m[2]) + m[3], text)
