"""Reduces columns to a number of points, and keeps the lowest and the highest value of each bucket."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.telemetry.bounded_columns import Column, Floats, Rows, Times


@dataclass(frozen=True)
class Points:
    """The points to draw: their times, which never decrease, and the values of each column; NaN: not known."""

    end: Times
    columns: dict[str, Floats]


def points_of(rows: Rows, most: int | None = None, since: int = 0, until: int | None = None) -> Points:
    """Returns the rows that ended within (since, until] (ns), as at most `most` points per column; None: all rows.

    A merged row, or a bucket of rows, becomes two points: first its lowest value, then its highest.
    """
    first = int(np.searchsorted(rows.end, since, side="right"))
    stop = len(rows.end) if until is None else max(int(np.searchsorted(rows.end, until, side="right")), first)
    end = rows.end[first:stop]
    if not len(end) or most == 0:
        return Points(np.empty(0, np.int64), {name: np.empty(0) for name in rows.names})
    whole = most is None or len(end) <= most
    if whole and all(_is_exact(rows.column(name), slice(first, stop)) for name in rows.names):
        return Points(end, {name: rows.column(name).mean[first:stop] for name in rows.names})
    groups = len(end) if most is None else max(min(most // 2, len(end)), 1)
    starts = np.unique(np.linspace(0, len(end), groups, endpoint=False).astype(np.int64))
    last = np.append(starts[1:], len(end)) - 1
    columns = {}
    for name in rows.names:
        column = rows.column(name)
        low, high = (
            np.fmin.reduceat(column.low[first:stop], starts),
            np.fmax.reduceat(column.high[first:stop], starts),
        )
        columns[name] = np.stack([low, high], axis=1).ravel()
    return Points(np.stack([end[starts], end[last]], axis=1).ravel(), columns)


def _is_exact(column: Column, part: slice) -> bool:
    """Returns True if the lowest and the highest value are the same in each of the rows."""
    return bool(np.array_equal(column.low[part], column.high[part], equal_nan=True))
