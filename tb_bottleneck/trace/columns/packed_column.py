"""Stores the integer columns of large tables in little memory.

Most columns are ids and row numbers of less than 32 bits, and many columns are 0 for most kinds of events. Columns are
stored as integers of 8, 16 or 32 bits. Arithmetic on these would overflow, so everything that is read from a column is
int64.
"""

import ctypes
import operator
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from tb_bottleneck.trace.columns.number_columns import narrow
from tb_bottleneck.trace.table import Bools, Ints


def return_freed_memory() -> None:
    """Returns freed memory to the operating system. Does nothing if the C library has no function for this.

    glibc keeps freed memory that lies below memory still in use. After a trace is read, the kept memory is as large as
    the columns.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
        if trim is not None:
            trim(0)


Value = TypeVar("Value", bound=np.generic)

# Number of rows that are looked up at once.
_PART = 1 << 16
# If the share of zeros in a column is larger, only the other values are stored, with the row number of each.
MOSTLY_ZERO = 0.9


def packed(values: Any) -> Ints:
    """Returns a read-only column of the integers in `values`, stored in little memory.

    Indexing the column returns int64. For arithmetic, index the column first (`column[:] + 1`). Comparisons and NumPy
    functions accept the column itself.
    """
    some = np.count_nonzero(values)
    column = PackedColumn if some > (1 - MOSTLY_ZERO) * len(values) else SparseColumn
    return cast("Ints", column(narrow(values)))


def look_up(values: NDArray[Value], column: Ints) -> NDArray[Value]:
    """Returns `values[column]`, computed in parts: NumPy would convert the whole column to int64 at once."""
    found = np.empty(len(column), values.dtype)
    for first in range(0, len(column), _PART):
        found[first : first + _PART] = values[column[first : first + _PART]]
    return found


def _compared(test: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Bools]:
    def compare(self: "PackedColumn", other: Any) -> Bools:
        # An enum is converted, because numpy would widen the column for it.
        return cast("Bools", test(self._values, int(other) if isinstance(other, int) else np.asarray(other)))

    return compare


class PackedColumn:
    """A column of integers, stored in the smallest integer type that fits all values."""

    __hash__ = None  # type: ignore[assignment]

    _values: Any

    def __init__(self, values: Any) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, rows: Any) -> Any:
        """Returns the rows as int64: one number, or an array."""
        return self._values[rows].astype(np.int64)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Returns all rows as a new array; the default dtype is int64."""
        return self._values.astype(np.int64 if dtype is None else dtype)

    def tolist(self) -> list[int]:
        """Returns all rows as Python integers."""
        return list(self._values.tolist())

    __eq__ = _compared(operator.eq)  # type: ignore[assignment]
    __ne__ = _compared(operator.ne)  # type: ignore[assignment]
    __lt__ = _compared(operator.lt)
    __le__ = _compared(operator.le)
    __gt__ = _compared(operator.gt)
    __ge__ = _compared(operator.ge)


class SparseColumn(PackedColumn):
    """A column in which most values are 0. Only the other values are stored, with the row number of each."""

    def __init__(self, values: Any) -> None:
        self._length = len(values)
        self._rows = np.flatnonzero(values)
        self._some = values[self._rows]

    def __len__(self) -> int:
        return self._length

    @property
    def _values(self) -> Any:
        values = np.zeros(self._length, self._some.dtype)
        values[self._rows] = self._some
        return values

    def __getitem__(self, rows: Any) -> Any:
        """Returns the rows as int64: one number, or an array."""
        if isinstance(rows, slice):
            return self._part(range(*rows.indices(self._length)))
        wanted = np.asarray(rows)
        if wanted.dtype.kind != "i" or wanted.size > (1 - MOSTLY_ZERO) * self._length:
            return super().__getitem__(rows)
        if wanted.size and not (-self._length <= wanted.min() and wanted.max() < self._length):
            raise IndexError(f"a row that is not in the column, which has {self._length}")
        if not len(self._rows):
            return np.zeros(wanted.shape, np.int64)[()]
        wanted = np.where(wanted < 0, wanted + self._length, wanted)
        at = np.minimum(np.searchsorted(self._rows, wanted), len(self._rows) - 1)
        return np.where(self._rows[at] == wanted, self._some[at].astype(np.int64), 0)[()]

    def _part(self, rows: range) -> Ints:
        if rows.step != 1:
            return cast("Ints", np.asarray(self)[rows.start :: rows.step][: len(rows)])
        first, end = np.searchsorted(self._rows, (rows.start, rows.stop))
        part = np.zeros(len(rows), np.int64)
        part[self._rows[first:end] - rows.start] = self._some[first:end]
        return part


class SumColumn(PackedColumn):
    """A column that is the sum of two columns. The sum is computed only for the rows that are read."""

    def __init__(self, first: Ints, second: Ints) -> None:
        self._first, self._second = first, second

    def __len__(self) -> int:
        return len(self._first)

    @property
    def _values(self) -> Any:
        return self[:]

    def __getitem__(self, rows: Any) -> Any:
        """Returns the rows as int64: one number, or a new array."""
        return self._first[rows] + self._second[rows]
