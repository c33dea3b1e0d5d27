"""Reads and repairs events one by one, for text that the typed decoder refused.

If an event cannot be repaired, only this event is lost: reading continues after the next boundary between two events.
"""

import json
import re
from collections import Counter
from typing import Any

import msgspec

from tb_bottleneck.base.measure import Record
from tb_bottleneck.sources.json_repair import DECODER, repaired
from tb_bottleneck.sources.trace_event import RAW_ARGUMENTS, Event

# Every key that an event may have in the Trace Event Format: an event starts with one of these keys.
FIRST_KEYS = (
    r'"(?:ph|cat|name|pid|tid|ts|dur|args|id2?|bp|s|sf|stack|esf|estack|tts|tdur|cname|scope|bind_id|flow_in|flow_out|v)"'
    r"\s*:"
)
# The brace that closes an event: another event or the end of the list follows.
_LAST_BRACE = re.compile(r"\}(?=(\s*(?:,\s*)?)(?:\{\s*" + FIRST_KEYS + r"|\]\s*(?:,\s*\"|\}|\Z)))")
_NEXT_EVENT = re.compile(r"\{\s*" + FIRST_KEYS)
_SEPARATORS = re.compile(r"[\s,]*")
_END_OF_LIST = re.compile(r'\]\s*(?:,\s*"|\}|\Z)')
_PHASE = re.compile(r'"ph"\s*:')
# The decoder gets a window of this many characters, then eight times as many, and so on. The reason is that the
# decoder's error messages count the lines before the error, which takes quadratic time on a long text of broken events.
_WINDOW = 1 << 12
# An error this close to the end of the window may come from the cut, which can leave half a literal or half an escape.
_LONGEST_TOKEN = 16
# The white space between a brace and the next event is shorter than this.
_LOOKBACK = 256


class LenientResult(Record, frozen=True):
    """The events in a text. The unread rest of the text begins at the index `rest`. `ended` is True if the list of
    events ends at `rest`."""

    events: list[Event]
    rest: int
    ended: bool


class _Broken(Exception):
    """Raised if the text is not JSON from the index `at` on. `early` is True if more text after its end could make the
    text valid."""

    def __init__(self, at: int, early: bool) -> None:
        super().__init__()
        self.at = at
        self.early = early


class LenientReader:
    """Reads events from text, and counts unusable events by reason in `lost`."""

    def __init__(self, lost: Counter[str]) -> None:
        self._lost = lost

    def read(self, text: str, following: str) -> LenientResult:
        """Reads `text` up to the first incomplete event. `following` is the beginning of the text that comes after
        `text`."""
        return self._read(text, following, final=False)

    def read_last(self, text: str) -> LenientResult:
        """Reads `text`, which is the last text of a file. An incomplete event is counted as lost ("cut off")."""
        return self._read(text, "", final=True)

    def _read(self, text: str, following: str, final: bool) -> LenientResult:
        events: list[Event] = []
        # If another event follows, a "]" is a part of a broken event and not the end of the list.
        may_end = not _PHASE.search(following)
        at = 0
        while True:
            at = _SEPARATORS.match(text, at).end()  # type: ignore[union-attr]  # the pattern matches everywhere
            if at >= len(text):
                return LenientResult(events, at, False)
            if may_end and _END_OF_LIST.match(text, at):
                return LenientResult(events, at + 1, True)
            try:
                raw, end = self._value(text, at, final)
            except _Broken:
                if not final:
                    return LenientResult(events, at, False)
                self._lost["cut off"] += 1
                return LenientResult(events, len(text), False)
            event = self._event(raw)
            if event is not None:
                events.append(event)
            at = end

    def _value(self, text: str, at: int, final: bool) -> tuple[object, int]:
        """Returns the value that begins at the index `at`, and the index of its end. The value is None if its text
        cannot be repaired.

        Raises _Broken if the value does not end in `text`."""
        if text[at] != "{":
            following = _NEXT_EVENT.search(text, at)
            return None, following.start() if following else len(text)
        try:
            return self._decoded(text, at)
        except _Broken as broken:
            if broken.early and not final:
                raise
            brace = _last_brace(text, at, broken.at)
            if brace is None and (final or not text.endswith("}")):
                raise
            end = brace.end() if brace else len(text)
            return repaired(text[at:end]), end

    def _decoded(self, text: str, at: int) -> tuple[object, int]:
        size = _WINDOW
        while True:
            window = text[at : at + size]
            whole = at + size >= len(text)
            try:
                value, length = DECODER.raw_decode(window)
                return value, at + length
            except json.JSONDecodeError as error:
                early = error.msg.startswith("Unterminated string") or error.pos >= len(window) - _LONGEST_TOKEN
                if whole or not early:
                    raise _Broken(at + error.pos, early) from None
            except (ValueError, RecursionError):  # thousands of digits, thousands of brackets
                raise _Broken(at, False) from None
            size *= 8

    def _event(self, raw: object) -> Event | None:
        """Returns `raw`, a decoded JSON value, as an event; None if `raw` is no event. If only the arguments are
        malformed, returns the event without arguments. Counts the loss in both cases."""
        event = _converted(raw)
        if event is None and isinstance(raw, dict):
            event = _converted({**raw, "args": None})
            if event is not None:
                self._lost["arguments"] += 1
        if event is None:
            self._lost["malformed"] += 1
        return event


def _converted(raw: object) -> Event | None:
    if not isinstance(raw, dict):
        return None
    args = raw.get("args")
    try:
        plain = _with_plain_keys({**raw, "args": _with_raw(_with_plain_keys(args))} if isinstance(args, dict) else raw)
        return msgspec.convert(plain, Event, strict=False)
    except (msgspec.ValidationError, UnicodeEncodeError, RecursionError, OverflowError):
        return None


def _with_raw(args: dict[str, Any]) -> dict[str, Any]:
    """Returns `args`, in which the values of RAW_ARGUMENTS are encoded as JSON text again."""
    raw = {key: msgspec.Raw(msgspec.json.encode(args[key])) for key in RAW_ARGUMENTS if key in args}
    return {**args, **raw}


def _with_plain_keys(raw: dict[str, Any]) -> dict[str, Any]:
    """Returns those items of `raw` whose keys are ASCII, because msgspec fails on keys that were not UTF-8."""
    return {key: value for key, value in raw.items() if key.isascii()}


def _last_brace(text: str, begin: int, error: int) -> re.Match[str] | None:
    """Returns the match of the brace that closes the event at the index `begin`; None if there is no such brace.

    `error` is the index of the decoder's error: the text before this index was read without an error."""
    matches = _LAST_BRACE.finditer(text, max(begin, error - _LOOKBACK))
    return next((match for match in matches if match.end() + len(match[1]) >= error), None)
