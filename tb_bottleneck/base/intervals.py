"""Sets of half-open time intervals and their operations.

A `Spans` is canonical: sorted and disjoint, without empty or touching spans. All times are int64 nanoseconds.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tb_bottleneck.base.measure import Record

Times = NDArray[np.int64]

# Number of times that are looked up at once. Temporary arrays for all events of a recording would take much memory.
_PART = 1 << 16


class Spans(Record, frozen=True, eq=False):
    """A canonical set of intervals [starts[i], ends[i]), in ns: sorted, disjoint, not empty and not touching."""

    starts: Times
    ends: Times

    def __len__(self) -> int:
        """Returns the number of intervals."""
        return len(self.starts)

    def total(self) -> int:
        """Returns the sum of the lengths of all intervals, in ns."""
        return int((self.ends - self.starts).sum())

    def covered(self, begin: ArrayLike, end: ArrayLike) -> Times:
        """Returns for each i the time in ns that this set covers in [begin[i], end[i]); 0 if end[i] <= begin[i].
        Scalars are accepted, too."""
        begins, stops = np.asarray(begin, np.int64), np.asarray(end, np.int64)
        return self._until(np.maximum(stops, begins)) - self._until(begins)

    def contains(self, times: Times) -> NDArray[np.bool_]:
        """Returns a mask of the shape of `times`, which are in ns: True where a time is inside one of the intervals."""
        # The ends of the spans. Times before the first span get the smallest int64: no time is before this end.
        ends = np.concatenate(([np.iinfo(np.int64).min], self.ends))
        inside = np.empty(len(times), np.bool_)
        for first in range(0, len(times), _PART):
            part = times[first : first + _PART]
            inside[first : first + _PART] = part < ends[np.searchsorted(self.starts, part, side="right")]
        return inside

    def _until(self, times: Times) -> Times:
        """Returns for each of `times` (ns) how much time in ns this set covers before that time."""
        if not len(self):
            return np.zeros(times.shape, np.int64)
        before = np.concatenate(([0], np.cumsum(self.ends - self.starts)))
        index = np.searchsorted(self.starts, times, side="right")
        last = np.maximum(index - 1, 0)
        overhang = np.where(index > 0, np.maximum(self.ends[last] - times, 0), 0)
        return np.asarray(before[index] - overhang, np.int64)


EMPTY = Spans(np.empty(0, np.int64), np.empty(0, np.int64))


def union(starts: ArrayLike, ends: ArrayLike) -> Spans:
    """Returns the union of the intervals [starts[i], ends[i]) in ns, which may overlap, be unsorted or be empty."""
    begin, end = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
    some = end > begin
    if not some.all():
        begin, end = begin[some], end[some]
    if not len(begin):
        return EMPTY
    if (begin[1:] < begin[:-1]).any():  # rows of a trace are sorted; a copy of a million rows costs time and memory
        order = np.argsort(begin, kind="stable")
        begin, end = begin[order], end[order]
    reach = np.maximum.accumulate(end)
    first = np.concatenate(([True], begin[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return Spans(begin[first], reach[last])


def merge(*sets: Spans) -> Spans:
    """Returns the union of `sets`; an empty set if no set is given."""
    if not sets:
        return EMPTY
    return union(np.concatenate([s.starts for s in sets]), np.concatenate([s.ends for s in sets]))


def complement(spans: Spans, begin: int, end: int) -> Spans:
    """Returns the part of [begin, end) that is not in `spans`. `begin` and `end` are in ns."""
    inner = clip(spans, begin, end)
    starts = np.concatenate(([begin], inner.ends))
    ends = np.concatenate((inner.starts, [end]))
    keep = ends > starts
    return Spans(starts[keep].astype(np.int64), ends[keep].astype(np.int64))


def clip(spans: Spans, begin: int, end: int) -> Spans:
    """Returns the part of `spans` that is inside [begin, end). `begin` and `end` are in ns."""
    starts, ends = np.maximum(spans.starts, begin), np.minimum(spans.ends, end)
    keep = ends > starts
    return Spans(starts[keep], ends[keep])


def intersect(a: Spans, b: Spans) -> Spans:
    """Returns the intersection: the time that is in both `a` and `b`."""
    if not len(a) or not len(b):
        return EMPTY
    rows, columns = overlapping(a.starts, a.ends, b.starts, b.ends)
    return Spans(np.maximum(a.starts[rows], b.starts[columns]), np.minimum(a.ends[rows], b.ends[columns]))


def overlapping(starts: Times, ends: Times, other_starts: Times, other_ends: Times) -> tuple[Times, Times]:
    """Returns all pairs (i, j) where [starts[i], ends[i]) overlaps [other_starts[j], other_ends[j]), in order of time.

    The pairs are returned as an array of i and an array of j. The intervals of each of the two lists must be sorted
    and disjoint; they may touch.
    """
    # Interval i overlaps the intervals first[i] to last[i] - 1 of the other list.
    first = np.searchsorted(other_ends, starts, side="right")
    last = np.searchsorted(other_starts, ends, side="left")
    count = np.maximum(last - first, 0)
    rows = np.repeat(np.arange(len(starts)), count)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    return rows, np.repeat(first, count) + within


def subtract(a: Spans, b: Spans) -> Spans:
    """Returns the difference: the time that is in `a` but not in `b`."""
    if not len(a) or not len(b):
        return a
    return intersect(a, complement(b, int(a.starts[0]), int(a.ends[-1])))
