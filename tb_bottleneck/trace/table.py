"""Tables declared as data: a frozen dataclass of columns, each with a unit and one sentence that says what it promises.

Columns are numpy arrays of one length, read-only from the moment the table exists.
"""

from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = NDArray[np.intp]

T = TypeVar("T", bound="Table")


def column(unit: str, says: str) -> Any:
    """Declares a column. `unit` is ns, bytes, row (of which table), id, flag, count or a word list's name."""
    return field(metadata={"unit": unit, "says": says})


@dataclass(frozen=True, eq=False)
class Table:
    """Base of the tables: checks that the columns are of one length, and freezes them."""

    def __post_init__(self) -> None:
        lengths = {item.name: len(getattr(self, item.name)) for item in fields(self)}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"{type(self).__name__}: columns of different lengths: {lengths}")
        for item in fields(self):
            getattr(self, item.name).flags.writeable = False

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def take(self: T, rows: Any) -> T:
        """The table of just these rows: an index array, a mask or a slice."""
        return type(self)(*(getattr(self, item.name)[rows] for item in fields(self)))


def by_thread(rows: Rows, thread: Ints) -> dict[int, Rows]:
    """The rows of each thread, in their order; `thread` is the whole column. One pass for any number of threads."""
    threads = thread[rows]
    order = np.argsort(threads, kind="stable")
    found, begins = np.unique(threads[order], return_index=True)
    return dict(zip(found.tolist(), np.split(rows[order], begins[1:]), strict=True)) if len(rows) else {}
