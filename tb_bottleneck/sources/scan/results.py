"""Events as columns, from the optional native scanner.

The scanner reads what Kineto usually writes. An event that the scanner does not fully understand is decoded by msgspec.
A text whose events cannot be read one by one is left to the pure reader, which is written in Python. Therefore both
readers return the same events.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tb_bottleneck.sources.trace_event import (
    EXACT_FLOAT_US,
    MEMORY_EVENT,
    Event,
    ExactEvent,
    decode_events,
    decode_exact_events,
)

if TYPE_CHECKING:
    from tb_bottleneck.native.scanner import Result

MAX_FLOAT_INTEGER = 2**53
"""float64 represents all integers up to this number exactly."""

Key = bytes | None


class Scanned(NamedTuple):
    """Columns of the events of some texts, each as the bytes of int64 values. `events` is the number of events.

    `columns` are the columns of complete events, `memory` those of memory events. `labels`, `signatures` and `callers`
    have the distinct keys to which entries of the columns refer (native/scanner.pyi); a key is None for an event in
    `decoded`.
    """

    events: int
    columns: tuple[bytes, ...]
    labels: list[Key]
    signatures: list[Key]
    memory: tuple[bytes, ...]
    callers: list[Key]
    rows: list[int]
    """Rows of the events that msgspec decoded."""

    decoded: list[Any]
    """The events of these rows, in the same order: all of type Event, or all of type ExactEvent."""


def with_decoded(result: "Result", exact: bool) -> Scanned | None:
    """Returns `result` with the events that the scanner did not read itself, decoded by msgspec.

    Returns None if one of these events needs the pure reader. `exact` selects ExactEvent instead of Event.
    """
    *_, handed = result
    decoded: list[Any] = []
    if handed:
        text = b"[" + b",".join([raw for _, raw in handed]) + b"]"
        try:
            decoded += decode_exact_events(text) if exact else decode_events(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ArithmeticError):
            return None
        if len(decoded) != len(handed) or not all(map(_independent, decoded)):
            return None
    return Scanned(*result[:6], [row for row, _ in handed], decoded)


def with_readable(result: "Result", exact: bool, lost: Counter[str]) -> Scanned:
    """Returns `result` like `with_decoded`, but without the events that cannot be read.

    Such events are counted in `lost`, and each is replaced by an event without an effect. Texts that are not UTF-8 are
    read with replacement characters.
    """
    *_, handed = result
    decoded: list[Any] = []
    for _, raw in handed:
        text = b"[%s]" % raw.decode("utf-8", "replace").encode()
        try:
            decoded += decode_exact_events(text) if exact else decode_events(text)
        except (msgspec.DecodeError, RecursionError, ArithmeticError):
            lost["malformed"] += 1
            decoded.append(ExactEvent(ph="M") if exact else Event(ph="M"))
    return Scanned(*result[:6], [row for row, _ in handed], decoded)


def _independent(event: Event | ExactEvent) -> bool:
    """Returns True if `event` can be read alone. Returns False if the event changes how the pure reader reads the
    events next to it, or their order."""
    if event.ph != "X" and event.name == MEMORY_EVENT:
        return False
    return isinstance(event, ExactEvent) or all(_is_plain(time) for time in (event.ts, event.dur))


def _is_plain(time: float | str | None) -> bool:
    """Returns True if the nanoseconds of `time` do not depend on how the times of other events are written."""
    if time is None or isinstance(time, str):
        return time is None
    return abs(time) < (EXACT_FLOAT_US if isinstance(time, float) else MAX_FLOAT_INTEGER)
