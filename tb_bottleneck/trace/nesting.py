"""Which row called which, on one thread: rows nest as calls do."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.trace.table import Bools, Ints

# Children end up to a few ns after their parents in recordings with ns resolution (pytorch/pytorch#122425).
OVERHANG_NS = 10
_PAST = np.iinfo(np.int64).min


@dataclass(frozen=True, eq=False)
class Nesting:
    """Rows of one thread, sorted by start, then the longest first; `parent` is the row around each, a root its own."""

    start: Ints
    end: Ints
    parent: Ints

    def self_times(self) -> Ints:
        """Time of each row that no row nested in it takes, in ns; never negative."""
        own = (self.end - self.start).astype(np.int64)
        nested = np.flatnonzero(self.parent != np.arange(len(self.parent)))
        around = self.parent[nested]
        np.subtract.at(own, around, np.minimum(self.end[nested], self.end[around]) - self.start[nested])
        return np.maximum(own, 0)

    def innermost(self, times: Ints) -> tuple[Bools, Ints]:
        """For each time whether a row runs then, and the innermost one that does (meaningless where none does)."""
        return innermost(self.start, self.end, times)


def innermost(start: Ints, end: Ints, times: Ints) -> tuple[Bools, Ints]:
    """For each time whether a row runs then, and the innermost one that does (meaningless where none does).

    Rows are of one thread, sorted by start. The innermost is the last that began and is not over yet. It is looked for
    in blocks of rows that double: up, until a block has a row that is not over, and down again into its last such half.
    So the work does not depend on how deep the rows nest.
    """
    latest = [end]  # per level: of 1, 2, 4, ... rows the end of the one that ends last
    bound = np.searchsorted(start, times, side="right")  # of the level: nodes from here on began too late or are over
    level, node = np.full(len(times), -1), np.zeros(len(times), np.int64)
    left = np.flatnonzero(bound > 0)
    while len(left):
        # The last node is a pair's first, and looked at here, or the second, and looked at with its pair above.
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
    """Finds the parents. Rows are of one thread, sorted by start, then the longest first.

    The row around one is the last before it that still runs when it begins. Each row points at the one before it at
    first; where that one is over, whatever it has passed over is over too, so the row takes over its pointer. Pointers
    double their reach each time round, so there are about log2(rows) rounds.
    """
    around = np.arange(-1, len(start) - 1)
    open_rows = np.arange(len(start))
    while len(open_rows):
        found = around[open_rows]
        over = (found >= 0) & (end[found] <= start[open_rows] + OVERHANG_NS) & (end[found] < end[open_rows])
        open_rows = open_rows[over]
        around[open_rows] = around[found[over]]
    return Nesting(start, end, np.where(around < 0, np.arange(len(start)), around))
