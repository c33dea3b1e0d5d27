"""The lines of the calls that the user's program makes, from the key that the monitor adds to a trace.

The form of the key is described where it is written (monitor/capture/call_lines.py). Its content is untrusted.
"""

import base64
import binascii
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.trace.events import Events
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Ints, Rows

KEY = "tb_bottleneck_lines"
MAX_CALLS = 4_000_000
MAX_LINE = 10_000_000
MAX_FILES = MAX_SAMPLES = 2_000
_VERSION = 1


class CallLines(Record, frozen=True, eq=False):
    """The lines of Python events that the program calls."""

    row: Rows
    """of the events, sorted"""

    line: Ints

    complete: bool
    """False if lines of later calls are missing."""

    files: Mapping[str, tuple[int, int]]
    """Size in bytes and time of change in ns since 1970 of the program's files, by their names in frames."""

    def __len__(self) -> int:
        return len(self.row)

    def of(self, rows: Rows | Ints) -> Ints:
        """Returns the lines of rows of the events; 0 if they are not known, and for row -1."""
        if not len(self):
            return np.zeros(len(rows), np.int64)
        at = np.minimum(np.searchsorted(self.row, rows), len(self) - 1)
        return np.where(self.row[at] == rows, self.line[at], 0)

    samples: Mapping[tuple[str, str], Sequence[tuple[int, int, int]]]
    """By file and name of a function: its first line, a line, and how often that ran when it was looked at."""

    def samples_of(self, file: str, function: str, first: int) -> dict[int, int]:
        """Returns the number of samples of each line of a function, which begins at line `first`; 0 for any."""
        rows = self.samples.get((file, function), ())
        return {line: count for begin, line, count in rows if first in (0, begin)}


NO_LINES = CallLines(np.empty(0, np.intp), np.empty(0, np.int64), True, {}, {})


def read_call_lines(raw: object, base_time_ns: int, events: Events) -> CallLines:
    """Returns the lines in the value of the key; none if it has another form.

    `base_time_ns` is the start of the recording's own clock, in ns since 1970.
    """
    if not isinstance(raw, dict) or raw.get("version") != _VERSION:
        return NO_LINES
    count, first = raw.get("calls"), raw.get("first")
    if type(count) is not int or type(first) is not int or not 0 < count <= MAX_CALLS or not 0 <= first < 1 << 62:
        return NO_LINES
    differences, lines = (_unpacked(raw.get(key), count, form) for key, form in (("starts", "<u8"), ("lines", "<u4")))
    if differences is None or lines is None or (differences >= 1 << 40).any() or (lines > MAX_LINE).any():
        return NO_LINES
    start = first - base_time_ns + np.cumsum(differences.astype(np.int64))
    rows = np.flatnonzero(events.kind == Kind.PYTHON)
    at = np.minimum(np.searchsorted(start, events.start[rows]), count - 1)
    found = start[at] == events.start[rows]
    return CallLines(
        rows[found],
        lines.astype(np.int64)[at[found]],
        raw.get("complete") is True,
        _files(raw.get("files")),
        _samples(raw.get("samples")),
    )


def _files(raw: object) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for name, facts in list(raw.items())[:MAX_FILES] if isinstance(raw, dict) else ():
        if isinstance(facts, list) and len(facts) == 2 and all(type(it) is int and 0 <= it < 1 << 62 for it in facts):
            found[name] = (facts[0], facts[1])
    return found


def _samples(raw: object) -> dict[tuple[str, str], list[tuple[int, int, int]]]:
    found: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
    for row in raw[:MAX_SAMPLES] if isinstance(raw, list) else ():
        if not isinstance(row, list) or [type(it) for it in row] != [str, int, str, int, int]:
            continue
        file, first, function, line, count = row
        if all(0 <= number <= MAX_LINE for number in (first, line, count)):
            found.setdefault((file, function), []).append((first, line, count))
    return found


def _unpacked(text: object, count: int, form: str) -> Any:
    """Returns numbers of this form, or None if there are not exactly so many."""
    size = count * np.dtype(form).itemsize
    if not isinstance(text, str):
        return None
    try:
        reader = zlib.decompressobj()
        data = reader.decompress(base64.b64decode(text, validate=True), size + 1)
    except (binascii.Error, ValueError, zlib.error):
        return None
    return np.frombuffer(data, form) if len(data) == size else None
