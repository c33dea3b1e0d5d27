"""Base class of tables, and functions that group rows. A table is a frozen dataclass whose fields are columns.

The columns of a table have equal length and are read-only. A column is a NumPy array, or an object that can be read
like a NumPy array (columns/packed_column.py). Each column is declared with a unit and a description.
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
    """Base class of the tables. Makes the columns read-only.

    Raises ValueError if the columns have different lengths.
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
        """Returns a table with the selected rows. `rows` is an index array, a mask or a slice."""
        return type(self)(*(getattr(self, item.name)[rows] for item in fields(self)))


def by_thread(rows: Rows, thread: Ints) -> dict[int, Rows]:
    """Returns a dict from each thread to the rows with this thread, in the order of `rows`.

    `rows` are row numbers of a table, and `thread` is the complete column `thread` of this table.
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
    """Yields for each distinct key an array of the positions in `keys` at which it occurs, in ascending key order."""
    if not len(keys):
        return
    order = np.argsort(keys, kind="stable")
    yield from np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)
