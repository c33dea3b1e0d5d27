"""Reads consecutive trace entries with one regular expression, 60 times as fast as reading them opcode by opcode.

A pickle repeats the layout of a record: the same keys in the same order, as references to the memo. The first record of
a layout is read opcode by opcode; a pattern made from its keys then reads the records that follow. Values are None,
booleans, integers, references to the memo, lists of such references, and short strings: torch writes "N/A" again as the
`compile_context` of each entry. A record with other values does not match and is read opcode by opcode too.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tb_bottleneck.sources.snapshot.byte_source import ByteSource
from tb_bottleneck.sources.snapshot.memo import NOT_KEPT, Memo
from tb_bottleneck.sources.snapshot.snapshot_columns import SnapshotColumns

Ints = NDArray[np.int64]

_INTEGER = rb"K.|M..|J....|\x8a(?:\x06.{6}|\x07.{7}|\x05.{5}|\x08.{8}|\x04.{4}|\x09.{9}|\x03.{3}|\x02..|\x01.|\x00)"
_REFERENCE = rb"h.|j...."
# A new list is stored in the memo before its items, which are references to frames. A mark precedes several references.
_FRAMES = rb"\]\x94(?:\((?:h.|j....)+e|h.a|j....a)?|" + _REFERENCE
_VALUES = {
    "action": _REFERENCE,
    "frames": _FRAMES,
    **dict.fromkeys(("addr", "device_free", "size", "stream", "time_us"), _INTEGER),
}
"""Patterns of the values that are read, by key."""
_LONGEST_TEXT = 32
_SIZED = b"|".join(re.escape(bytes([size])) + b".{%d}" % size for size in range(_LONGEST_TEXT + 1))
_TEXT = rb"\x8c(?:" + _SIZED + rb")\x94"
_UNREAD = b"(?:" + _REFERENCE + rb"|[N\x88\x89]|" + _INTEGER + b"|(" + _TEXT + b"))"
"""The pattern of values that are not read. Only new strings are captured, because the memo must store them."""
_WINDOW = 4 << 20
_LONGEST = 1 << 16  # bytes of one record; a list of 1,000 frames has 5 kB
MAX_LAYOUTS = 4
_WIDTH = 16  # bytes to which the opcodes of an integer are padded
_LONG, _LIST = 0x8A, ord("]")
_NO_VALUE = 1 << 40
"""Stands for a value that is not stored in the memo as a new value. All numbers in the memo are smaller."""


@dataclass(frozen=True)
class Layout:
    """The keys of a record in order, and the regular expression for records with these keys."""

    keys: tuple[str, ...]
    pattern: re.Pattern[bytes]


class FastEntries:
    """Reads consecutive trace entries of equal layout into `columns`."""

    path = "device_traces"

    def __init__(self, columns: SnapshotColumns) -> None:
        self._columns = columns
        self._layouts: dict[tuple[str, ...], Layout] = {}

    def learn(self, record: dict[Any, Any], memo: Memo) -> None:
        """Remembers the layout of `record` if it is a trace entry; at most MAX_LAYOUTS layouts."""
        if "action" not in record or len(self._layouts) >= MAX_LAYOUTS:
            return
        keys = tuple(record)
        if keys not in self._layouts and all(key in memo.indices for key in keys):
            parts = [b"(?:" + b"|".join(map(_reference, memo.indices[key])) + b")" + _value(key) for key in keys]
            # The empty alternative matches where no record follows. Without it, `finditer` would search the rest of the
            # window for the next record.
            pattern = re.compile(rb"\}\x94\(" + b"".join(parts) + b"u|", re.DOTALL)
            self._layouts[keys] = Layout(keys, pattern)

    def read(self, source: ByteSource, memo: Memo, group: int) -> bool:
        """Reads the consecutive entries with a known layout that begin at `source.at`. Returns False if there are none,
        else True. `group` is the index of the device."""
        if not self._layouts:
            return False
        if len(source.data) - source.at < _LONGEST:
            source.fill(_WINDOW)
        for layout in self._layouts.values():
            rows, end = _run(layout.pattern, source.data, source.at)
            if rows:
                self._take(layout, rows, memo, group)
                source.at = end
                return True
        return False

    def _take(self, layout: Layout, rows: list[tuple[bytes, ...]], memo: Memo, device: int) -> None:
        values = dict(zip(layout.keys, zip(*rows, strict=True), strict=True))
        read = {key: values[key] for key in _VALUES if key in values}
        stacks = self._stacks(values, memo)
        actions = {value: self._columns.action_of(memo.get(reference(value))) for value in set(read["action"])}
        self._columns.entries.add_many(
            np.full(len(rows), device),
            np.array([actions[value] for value in read["action"]], np.int64),
            _integers(read.get("addr") or read.get("device_free") or (), len(rows)),
            *(_integers(read.get(key, ()), len(rows)) for key in ("size", "stream", "time_us")),
            stacks,
        )

    def _stacks(self, values: Mapping[str, Sequence[bytes]], memo: Memo) -> Ints:
        """Returns the stack of each record, and stores the records and their new lists and strings in the memo."""
        known, new = self._columns.stack_of_bytes, self._columns.new_stack
        frames = values.get("frames", ())
        listed = np.array([value[0] == _LIST for value in frames], np.bool_)
        stacks = np.zeros(len(values["action"]), np.int64)
        if len(frames):
            stacks[listed] = [
                known[value] if value in known else new(value, memo) for value in frames if value[0] == _LIST
            ]
        numbers = [np.full(len(stacks), NOT_KEPT)]  # first, because the memo has a record before its values
        for key, column in values.items():
            if key == "frames":
                numbers.append(np.where(listed, stacks, _NO_VALUE))
            elif key not in _VALUES and any(column):
                texts = {value: memo.number_of_text(_text(value)) for value in set(column) if value}
                numbers.append(np.array([texts.get(value, _NO_VALUE) for value in column]))
        table = np.column_stack(numbers)
        # First, because the references below may refer to values of these records.
        memo.extend(table[table != _NO_VALUE].astype(np.int32))
        if len(frames):
            stacks[~listed] = self._referred([reference(value) for value in frames if value[0] != _LIST], memo)
        return stacks

    def _referred(self, indices: list[int], memo: Memo) -> Ints:
        """Returns the numbers of the stacks at these indices of the memo.

        A stack that was read opcode by opcode is a list in the memo.
        """
        if indices and max(indices) >= len(memo):
            memo.get(max(indices))  # raises
        stacks = np.array([memo.numbers[index] for index in indices], np.int64)
        for row in np.flatnonzero(stacks < 0).tolist():
            stacks[row] = self._columns.number_of(memo.get(indices[row]))
        return stacks


def _value(key: str) -> bytes:
    return b"(" + _VALUES[key] + b")" if key in _VALUES else _UNREAD


def _run(pattern: re.Pattern[bytes], data: bytes, at: int) -> tuple[list[tuple[bytes, ...]], int]:
    """Returns the regex groups of the records in `data` that match `pattern` and follow each other from the index `at`
    on without a gap, and the index after the last record."""
    rows = []
    for match in pattern.finditer(data, at, at + _WINDOW):
        if match.end() == at:  # the empty alternative
            break
        at = match.end()
        rows.append(match.groups())
    return rows, at


def _reference(index: int) -> bytes:
    """Returns the regular expression for the opcode that refers to the value at `index` of the memo."""
    code = b"h" + bytes([index]) if index < 256 else b"j" + index.to_bytes(4, "little")
    return re.escape(code)


def _text(value: bytes) -> str:
    """Returns the string that `value` describes: an opcode, the length of the text as one byte, the text, and the
    opcode that stores the string in the memo."""
    return value[2:-1].decode("utf-8", "replace")


def reference(value: bytes) -> int:
    """Returns the index into the memo that is the argument of `value`, the opcode of a reference."""
    return int.from_bytes(value[1:], "little")


def _integers(values: Sequence[bytes], count: int) -> Ints:
    """Returns `count` integers, given their opcodes `values`. A value that is not an integer becomes 0. If `values` is
    empty, all integers are 0."""
    if not len(values):
        return np.zeros(count, np.int64)
    raw = np.frombuffer(b"".join([value.ljust(_WIDTH, b"\0")[:_WIDTH] for value in values]), np.uint8)
    table = raw.reshape(count, _WIDTH)
    code, length = table[:, 0], table[:, 1].astype(np.int64)
    result = np.zeros(count, np.int64)
    for written, form in ((ord("K"), "u1"), (ord("M"), "<u2"), (ord("J"), "<i4")):
        rows = np.flatnonzero(code == written)
        size = np.dtype(form).itemsize
        result[rows] = np.ascontiguousarray(table[rows, 1 : 1 + size]).view(form)[:, 0]
    for size in np.unique(length[code == _LONG]).tolist():
        rows = np.flatnonzero((code == _LONG) & (length == size))
        parts = np.zeros((len(rows), 8), np.uint8)
        parts[:, : min(size, 8)] = table[rows, 2 : 2 + min(size, 8)]
        if 0 < size < 8:
            parts[:, size:] = np.where(parts[:, size - 1 : size] >= 128, 255, 0)  # the sign
        result[rows] = parts.view("<i8")[:, 0]
    return result
