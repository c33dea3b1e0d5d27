"""Which row called which, on one thread: rows nest as calls do."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.trace.table import Bools, Ints

# Children end up to a few ns after their parents in recordings with ns resolution (pytorch/pytorch#122425).
OVERHANG_NS = 10


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
        row = np.searchsorted(self.start, times, side="right") - 1
        found, row = row >= 0, np.maximum(row, 0)
        while True:
            over = found & (self.end[row] <= times) if len(self.start) else np.zeros(len(times), np.bool_)
            if not over.any():
                return found & (len(self.start) > 0), row
            rooted = over & (self.parent[row] == row)
            found, row = found & ~rooted, np.where(over, self.parent[row], row)


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
