"""Columns over time with a bounded size, and their reduction to a number of points."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Times = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Column:
    """One figure over time, one entry per row. In a row that is merged from several readings, `low`, `mean` and `high`
    are the lowest, mean and highest value of these readings; in other rows, the three are equal. NaN means not
    known."""

    low: Floats
    mean: Floats
    high: Floats


@dataclass(frozen=True)
class _Buckets:
    end: Times
    count: Counts
    columns: dict[str, Column]


class Rows:
    """A table of at most `bound` rows: recent rows are kept as they are, older ones are merged into groups (buckets).

        history: buckets of 2^k rows, oldest first │ recent: single rows
        end  count  low mean high (per column)     │ end  count  value (per column)

    When the history is full, its buckets are merged in pairs. Therefore all buckets are made from about the same number
    of rows. A bucket keeps the lowest and the highest value, so no spike is lost. Not thread-safe."""

    def __init__(self, names: Iterable[str], bound: int) -> None:
        self.names = tuple(names)
        self._quarter = max(bound // 4, 1)
        self._bucket = 1
        self._end: Times = np.empty(2 * self._quarter, np.int64)
        self._count: Counts = np.empty(2 * self._quarter, np.int64)
        self._values: Floats = np.empty((len(self.names), 2 * self._quarter))
        self._recent = 0
        self._history: list[_Buckets] = []
        self._buckets = 0
        self._whole: _Buckets | None = None

    def __len__(self) -> int:
        return self._buckets + self._recent

    @property
    def last(self) -> int:
        """Time of the newest row, ns; 0 if there are no rows."""
        if self._recent:
            return int(self._end[self._recent - 1])
        return int(self._history[-1].end[-1]) if self._history else 0

    def append(self, end: Times, values: Mapping[str, Floats], count: Counts | None = None) -> None:
        """Adds rows. `end` has their times in ns, which must be later than those of the existing rows. A column that is
        not in `values` becomes NaN.

        `count` has the number of readings or steps that each row is the mean of; None means 1 for each row."""
        self._whole = None
        done = 0
        while done < len(end):
            room = len(self._end) - self._recent
            if room == 0:
                self._retire()
                continue
            part = slice(done, min(done + room, len(end)))
            into = slice(self._recent, self._recent + part.stop - part.start)
            self._end[into] = end[part]
            self._count[into] = 1 if count is None else count[part]
            for row, name in enumerate(self.names):
                self._values[row, into] = values[name][part] if name in values else np.nan
            self._recent = into.stop
            done = part.stop

    @property
    def end(self) -> Times:
        """End of each row, ns."""
        return self._all().end

    @property
    def count(self) -> Counts:
        """Number of readings, or steps, that each row is the mean of."""
        return self._all().count

    def column(self, name: str) -> Column:
        """Returns one column over all rows."""
        return self._all().columns[name]

    def _all(self) -> _Buckets:
        if self._whole is None:
            recent = self._values[:, : self._recent]
            end = self._end[: self._recent].copy()
            columns = {name: recent[row].copy() for row, name in enumerate(self.names)}
            count = self._count[: self._recent].copy()
            newest = _Buckets(end, count, {n: Column(v, v, v) for n, v in columns.items()})
            self._whole = _joined([*self._history, newest]) if self._history else newest
        return self._whole

    def _retire(self) -> None:
        """Moves the older half of the recent rows into the history."""
        old = self._quarter
        values = self._values[:, :old]
        single = {name: Column(v, v, v) for name, v in zip(self.names, values.copy(), strict=True)}
        made = _merged(_Buckets(self._end[:old].copy(), self._count[:old].copy(), single), self._bucket)
        if self._buckets + len(made.end) > 2 * self._quarter:
            self._history = [_merged(_joined(self._history), 2)]
            self._bucket *= 2
            made = _merged(made, 2)
        self._history.append(made)
        self._buckets = sum(len(part.end) for part in self._history)
        rest = self._recent - old
        self._end[:rest] = self._end[old : self._recent].copy()
        self._count[:rest] = self._count[old : self._recent].copy()
        self._values[:, :rest] = self._values[:, old : self._recent].copy()
        self._recent = rest


def _joined(parts: list[_Buckets]) -> _Buckets:
    def joined(pick: str, name: str) -> Floats:
        return np.concatenate([getattr(part.columns[name], pick) for part in parts])

    names = parts[0].columns
    return _Buckets(
        np.concatenate([part.end for part in parts]),
        np.concatenate([part.count for part in parts]),
        {name: Column(joined("low", name), joined("mean", name), joined("high", name)) for name in names},
    )


def _merged(rows: _Buckets, by: int) -> _Buckets:
    """Returns the rows merged in groups of `by`; the last group may be smaller."""
    if by == 1 or not len(rows.end):
        return rows
    starts = np.arange(0, len(rows.end), by)
    last = np.minimum(starts + by, len(rows.end)) - 1
    count = np.add.reduceat(rows.count, starts)
    return _Buckets(
        rows.end[last], count, {name: _merged_column(c, rows.count, starts) for name, c in rows.columns.items()}
    )


def _merged_column(column: Column, count: Counts, starts: npt.NDArray[np.intp]) -> Column:
    known = ~np.isnan(column.mean)
    weight = np.add.reduceat(np.where(known, count, 0), starts)
    total = np.add.reduceat(np.where(known, column.mean * count, 0.0), starts)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = total / weight  # 0 / 0 is NaN if no value is known
    return Column(np.fmin.reduceat(column.low, starts), mean, np.fmax.reduceat(column.high, starts))


@dataclass(frozen=True)
class Points:
    """The points to draw: `end` has their times (ns, ascending), `columns` the values by column (NaN: not known)."""

    end: Times
    columns: dict[str, Floats]


def points_of(rows: Rows, most: int | None = None, since: int = 0, until: int | None = None) -> Points:
    """Returns the rows that ended in (since, until] (ns) as at most `most` points per column. None means no limit.

    Each row becomes one point if that is exact: no row is merged, and there are at most `most` rows. Otherwise the rows
    are divided into groups, and each group becomes two points: first its lowest value, then its highest. There is at
    least one group, so `most` = 1 can result in two points."""
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
    """Returns True if the lowest and the highest value are equal in each of the rows `part`."""
    return bool(np.array_equal(column.low[part], column.high[part], equal_nan=True))
