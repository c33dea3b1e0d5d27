"""A window that moves forward over the plain bytes of a file, and integer columns that grow by rows or by batches."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from tb_bottleneck.base.errors import TooLarge, Unreadable


class ByteSource:
    """A window that moves forward over the plain bytes of a file.

    `data[at:]` has the bytes that are read but not consumed yet. `need` and `fill` read more bytes into `data`.
    """

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self.data = b""
        self.at = 0
        self._blocks = blocks

    def need(self, count: int) -> None:
        """Makes at least `count` bytes available after the position `at`. Raises Unreadable if the file ends before
        that."""
        if not self.fill(count):
            raise Unreadable("The snapshot ends early: the process that wrote it was stopped or ran out of disk space.")

    def fill(self, count: int) -> bool:
        """Reads until `count` bytes are available after the position `at`. Returns False if the file ends before that,
        else True."""
        if len(self.data) - self.at >= count:
            return True
        parts, have = [self.data[self.at :]], len(self.data) - self.at
        while have < count:
            block = next(self._blocks, b"")
            if not block:
                break
            parts.append(block)
            have += len(block)
        self.data, self.at = b"".join(parts), 0
        return have >= count

    def take(self, count: int) -> bytes:
        """Returns the next `count` bytes. Raises Unreadable at the end of the file."""
        self.need(count)
        begin = self.at
        self.at += count
        return self.data[begin : self.at]


Ints = NDArray[np.int64]
# Rows that are converted at once.
_PART = 1 << 16


class Columns:
    """Integer columns of equal length, appended in batches or row by row.

    `most` maps the name of a column to its largest value: `build` clips this column to the range from 0 to that value.
    Appending more than `limit` rows raises TooLarge.
    """

    def __init__(self, *names: str, limit: int, most: Mapping[str, int] | None = None) -> None:
        self._limit = limit
        self._most = most or {}
        self._parts: dict[str, list[Ints]] = {name: [] for name in names}
        self._rows: list[tuple[int, ...]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, *row: int) -> None:
        """Appends a row: one value per column."""
        self._rows.append(row)
        self._grow(1)
        if len(self._rows) >= _PART:
            self._join()

    def add_many(self, *columns: Ints) -> None:
        """Appends rows: one array per column."""
        self._join()
        for parts, values in zip(self._parts.values(), columns, strict=True):
            parts.append(values)
        self._grow(len(columns[0]))

    def build(self) -> dict[str, Ints]:
        """Returns the columns by name. Call this method only once: it removes the columns from this object."""
        self._join()
        built = {}
        for name in list(self._parts):
            parts = self._parts.pop(name)
            built[name] = np.concatenate(parts) if parts else np.empty(0, np.int64)
            if name in self._most:
                np.clip(built[name], 0, self._most[name], out=built[name])
        return built

    def _join(self) -> None:
        if self._rows:
            table = np.array(self._rows, np.int64)
            for parts, values in zip(self._parts.values(), table.T, strict=True):
                parts.append(np.ascontiguousarray(values))
            self._rows.clear()

    def _grow(self, count: int) -> None:
        self._count += count
        if self._count > self._limit:
            raise TooLarge(f"The snapshot has more than {self._limit:,} rows of one kind, which is the limit.")
