"""Reads the source lines from which the user's program calls functions. The monitor adds these lines to a trace.

The lines are the value of the top-level key KEY. monitor/capture/call_lines.py writes this value and describes its
form. The value is untrusted.
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
    """The source lines from which the program calls Python functions.

    `row` and `line` have one element per recorded call whose line is known: the event row of the called function, and
    the line of the caller.
    """

    row: Rows
    """Rows of the event table, ascending. Each is the event of a called function."""

    line: Ints

    complete: bool
    """False if the monitor left out the lines of later calls, because these took too much time or space."""

    files: Mapping[str, tuple[int, int]]
    """Maps the name of a file, as in frames, to its size in bytes and its time of modification in ns since 1970."""

    def __len__(self) -> int:
        return len(self.row)

    def of(self, rows: Rows | Ints) -> Ints:
        """Returns the line for each element of `rows` (rows of the event table, or -1); 0 if the line is unknown."""
        if not len(self):
            return np.zeros(len(rows), np.int64)
        at = np.minimum(np.searchsorted(self.row, rows), len(self) - 1)
        return np.where(self.row[at] == rows, self.line[at], 0)

    samples: Mapping[tuple[str, str], Sequence[tuple[int, int, int]]]
    """Maps (file, function) to tuples: first line of the function, a sampled line, number of samples of this line."""

    def samples_of(self, file: str, function: str, first: int) -> dict[int, int]:
        """Returns a dict from line to number of samples, for the lines of the function that begins at line `first`.

        If `first` is 0, all functions of the file with this name count. The dict is empty if there are no samples.
        """
        rows = self.samples.get((file, function), ())
        return {line: count for begin, line, count in rows if first in (0, begin)}


NO_LINES = CallLines(np.empty(0, np.intp), np.empty(0, np.int64), True, {}, {})


def read_call_lines(raw: object, base_time_ns: int, events: Events) -> CallLines:
    """Returns the lines in `raw`, the value of the key KEY; NO_LINES if `raw` does not have the expected form.

    `base_time_ns` is the time, in ns since 1970, at which the clock of the recording is 0.
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
    """Returns the numbers in `text` (zlib data in base64); None unless it has `count` numbers of the dtype `form`."""
    size = count * np.dtype(form).itemsize
    if not isinstance(text, str):
        return None
    try:
        reader = zlib.decompressobj()
        data = reader.decompress(base64.b64decode(text, validate=True), size + 1)
    except (binascii.Error, ValueError, zlib.error):
        return None
    return np.frombuffer(data, form) if len(data) == size else None
