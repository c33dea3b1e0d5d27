"""Distinct values and rows, the heaviest value, and percentiles, as numpy's functions compute them.

np.percentile, and np.unique without counts or indices, import numpy.ma when they are first called. That
takes about 8 ms of the 170 ms of a small trace.
"""

from math import prod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

MIN_TABLE = 1 << 16  # number of combinations up to which a table is always used

Integer = TypeVar("Integer", bound=np.integer[Any])


def distinct_values(values: NDArray[Integer]) -> NDArray[Integer]:
    """Returns the distinct elements of `values`, in ascending order."""
    distinct: NDArray[Integer] = np.unique(values, return_counts=True)[0]
    return distinct


def distinct_rows(*columns: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Finds the distinct rows of a table. Each of `columns` is a column of the table: arrays of equal length with
    integers >= 0.

    Returns two arrays. The first has for each distinct row, in ascending order, the index of its first occurrence. The
    second has for each row of the table the position of the equal row in the first array.

    For dense values, such as interned ids, a table of all combinations replaces np.unique. np.unique sorts, which takes
    ten times as long and twice the memory; with `axis` it takes ten times as long again.
    """
    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    if prod(sizes) > max(len(columns[0]), MIN_TABLE):
        first, which = np.unique(columns[0], return_index=True, return_inverse=True)[1:]
        for column, size in zip(columns[1:], sizes[1:], strict=True):
            codes = which.astype(np.int64) * size + column
            first, which = np.unique(codes, return_index=True, return_inverse=True)[1:]
        return first, which
    code = np.ravel_multi_index(columns, sizes)
    table = np.full(prod(sizes), -1)
    table[code[::-1]] = np.arange(len(code) - 1, -1, -1)  # of several rows, the one assigned last remains
    occurring = np.flatnonzero(table >= 0)
    first = table[occurring]
    table[occurring] = np.arange(len(occurring))
    return first, table[code]


def heaviest_value(values: NDArray[np.integer[Any]], weights: NDArray[Any]) -> int:
    """Returns the value for which the sum of its `weights` is largest. `values` and `weights` have one element per
    item. `values` must not be empty, and its elements must be >= 0."""
    heaviest = int(np.argmax(np.bincount(values, weights=weights)))
    return heaviest if (values == heaviest).any() else int(values[0])  # all weights are 0: argmax returns 0


def percentile(values: NDArray[Any], percent: float, counts: NDArray[np.int64] | None = None) -> float:
    """Returns the percentile `percent` (0 to 100) of `values`, with linear interpolation between the two nearest ranks
    (numpy's default).

    `values` must not be empty. With `counts`, the result is as if values[i] occurred counts[i] times.
    """
    if counts is None:
        ordered, total = np.sort(values), len(values)
    else:
        order = np.argsort(values)
        ordered, until = values[order], counts[order].cumsum()
        total = int(until[-1])
    rank = (total - 1) * (percent / 100)
    below = int(rank)
    ranks = np.array([below, min(below + 1, total - 1)])
    low, high = ordered[ranks if counts is None else np.searchsorted(until, ranks, side="right")]
    part = rank - below
    # Interpolated from the nearer of the two values, so that the result is rounded as numpy's.
    return float(low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part))
