"""Declared tables: frozen dataclasses of columns, each with a unit and a description; and groups of rows.

The columns of a table have equal length and are read-only: NumPy arrays, or columns that read like NumPy arrays
(columns/packed_column.py).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = NDArray[np.intp]

T = TypeVar("T", bound="Table")


def column(unit: str, description: str) -> Any:
    """Declares a column. `unit` is ns, bytes, row (of a table), id, flag, count, or the name of an enum."""
    return field(metadata={"unit": unit, "description": description})


@dataclass(frozen=True, eq=False)
class Table:
    """Base class of the tables: makes the columns read-only.

    Raises ValueError: the columns have different lengths.
    """

    def __post_init__(self) -> None:
        lengths = {item.name: len(getattr(self, item.name)) for item in fields(self)}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"{type(self).__name__}: columns of different lengths: {lengths}")
        for values in (getattr(self, item.name) for item in fields(self)):
            if isinstance(values, np.ndarray):
                values.flags.writeable = False

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    @classmethod
    def empty(cls: type[T]) -> T:
        """Returns a table without rows."""
        return cls(*(np.empty(0, np.float64 if item.type == Floats else np.int64) for item in fields(cls)))

    def take(self: T, rows: Any) -> T:
        """Returns a table of the given rows. `rows` is an index array, a mask or a slice."""
        return type(self)(*(getattr(self, item.name)[rows] for item in fields(self)))


def by_thread(rows: Rows, thread: Ints) -> dict[int, Rows]:
    """Returns a dict from thread to those of `rows` that have this thread, in the order of `rows`.

    `thread` is the whole column of the table that `rows` refer to.
    """
    if not len(rows):
        return {}
    threads = thread[rows]
    if threads.max() <= np.iinfo(np.int16).max:
        threads = threads.astype(np.int16)  # numpy sorts these by radix: a tenth of the time
    if (threads == threads[0]).all():
        return {int(threads[0]): rows}
    order = np.argsort(threads, kind="stable")
    threads = threads[order]
    starts = np.flatnonzero(np.append(True, threads[1:] != threads[:-1]))
    return dict(zip(threads[starts].tolist(), np.split(rows[order], starts[1:]), strict=True))


def rows_by_key(keys: Ints) -> Iterator[Ints]:
    """Yields one array per distinct key, in ascending order of the keys: the positions of this key in `keys`."""
    if not len(keys):
        return
    order = np.argsort(keys, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
