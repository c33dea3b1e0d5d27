"""Nesting of calls on one thread: finds the parent of each call, and the innermost call that runs at a given time.

A call is a row of `start` and `end`.
"""

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.trace.table import Bools, Ints

# In recordings with ns resolution a child may end a few ns after its parent (pytorch/pytorch#122425).
OVERHANG_NS = 10
_PAST = np.iinfo(np.int64).min


class Nesting(Record, frozen=True, eq=False):
    """The nesting of the rows (calls) of one thread, sorted by start, then longest first.

    `start` and `end` are in ns. `parent` has for each row the innermost row that encloses it, or the row itself if
    there is none.
    """

    start: Ints
    end: Ints
    parent: Ints

    def self_times(self) -> Ints:
        """Returns the time of each row without the rows nested in it, in ns; never negative."""
        nested = self.end[self.parent]
        np.minimum(self.end, nested, out=nested)
        nested -= self.start
        nested[self.parent == np.arange(len(self.parent))] = 0
        own: Ints = self.end - self.start
        np.subtract.at(own, self.parent, nested)
        return np.maximum(own, 0, out=own)

    def self_spans(self, rows: Bools) -> tuple[Ints, Ints, Ints]:
        """Returns three arrays: the starts (ns), ends (ns) and rows of the time spans in which a row itself runs.

        Only rows in the mask `rows` are returned. The spans of a row are the times before, between and after the rows
        directly nested in it. The spans are disjoint and sorted by start.
        """
        nested = np.flatnonzero(rows[self.parent])
        nested = nested[self.parent[nested] != nested]
        owners = np.flatnonzero(rows)
        owner = np.concatenate((owners, self.parent[nested]))
        order = np.argsort(owner, kind="stable")  # each row, then its nested rows in the order of their starts
        owner = owner[order]
        begin = np.concatenate((self.start[owners], self.end[nested]))[order]
        end = np.concatenate((self.start[owners], self.start[nested]))[order]
        end = np.where(np.append(owner[1:] != owner[:-1], True), self.end[owner], np.append(end[1:], 0))
        some = np.flatnonzero(end > begin)
        some = some[np.argsort(begin[some], kind="stable")]
        begin, end, owner = begin[some], end[some], owner[some]
        end[:-1] = np.minimum(end[:-1], begin[1:])  # a nested row may overhang
        return begin, end, owner

    def innermost(self, times: Ints) -> tuple[Bools, Ints]:
        """Returns two arrays with one element per time (ns) in `times`: True if a row runs at this time, and the
        innermost row that runs (undefined if there is none)."""
        return innermost(self.start, self.end, times)


def innermost(start: Ints, end: Ints, times: Ints) -> tuple[Bools, Ints]:
    """Returns two arrays with one element per time (ns) in `times`: True if a row runs at this time, and the innermost
    row that runs (undefined if there is none).

    The rows are those of one thread, sorted by start. The innermost row is the last row that has started and not ended.
    The search starts at the last row that has started. It doubles the size of the block of rows that it looks at, until
    the block contains a running row. Then it halves the block repeatedly, and takes the later half if a row runs there.
    The number of rounds does not depend on the nesting depth.
    """
    latest = [end]  # per level: the latest end in each block (node) of 1, 2, 4, ... rows
    bound = np.searchsorted(start, times, side="right")  # per level: nodes from here on start too late or have ended
    level, node = np.full(len(times), -1), np.zeros(len(times), np.int64)
    left = np.flatnonzero(bound > 0)
    while len(left):
        # If the last node is the first of its pair it is checked here; otherwise its pair is checked one level up.
        last = bound[left] - 1
        found = (last % 2 == 0) & (latest[-1][last] > times[left])
        level[left[found]], node[left[found]] = len(latest) - 1, last[found]
        bound[left] //= 2
        left = left[~found & (bound[left] > 0)]
        latest.append(np.maximum(latest[-1][::2], np.append(latest[-1][1::2], _PAST)[: (len(latest[-1]) + 1) // 2]))
    for below in range(len(latest) - 2, -1, -1):
        rows = np.flatnonzero(level > below)
        second = np.minimum(2 * node[rows] + 1, len(latest[below]) - 1)
        node[rows] = np.where(latest[below][second] > times[rows], second, 2 * node[rows])
    return level >= 0, node


def nest(start: Ints, end: Ints) -> Nesting:
    """Returns the nesting of the rows of one thread, sorted by start, then longest first. Times are in ns.

    The parent of a row is the last earlier row that is still running when the row starts. The algorithm is pointer
    jumping. At first, each row has a pointer to the row before it. In each round, if a row's pointer leads to a row
    that has ended, it is replaced by the pointer of that row, because all rows in between have ended, too. Pointers
    reach twice as far in each round, so there are about log2(rows) rounds.
    """
    around = np.arange(-1, len(start) - 1)
    # The first round uses slices, which is fast: there may be millions of rows, and most of them need only this round.
    open_rows = 1 + np.flatnonzero((end[:-1] <= start[1:] + OVERHANG_NS) & (end[:-1] < end[1:]))
    around[open_rows] = open_rows - 2
    while len(open_rows):
        found = around[open_rows]
        over = (found >= 0) & (end[found] <= start[open_rows] + OVERHANG_NS) & (end[found] < end[open_rows])
        open_rows = open_rows[over]
        around[open_rows] = around[found[over]]
    outermost = np.flatnonzero(around < 0)
    around[outermost] = outermost
    return Nesting(start, end, around)
