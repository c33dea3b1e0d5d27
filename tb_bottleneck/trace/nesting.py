"""Which row called which, on one thread: rows nest as calls do."""

import numpy as np

from tb_bottleneck.trace.table import Ints

# Children end up to a few ns after their parents in recordings with ns resolution (pytorch/pytorch#122425).
OVERHANG_NS = 10


def self_times(start: Ints, end: Ints) -> Ints:
    """Time of each row that no row nested in it takes, in ns; never negative.

    Rows are of one thread, sorted by start, then the longest first.
    """
    remaining = (end - start).astype(np.int64)
    begins, ends = start.tolist(), end.tolist()
    open_rows: list[int] = []
    for row, begin in enumerate(begins):
        while open_rows and ends[open_rows[-1]] <= begin + OVERHANG_NS and ends[open_rows[-1]] < ends[row]:
            open_rows.pop()
        if open_rows:
            parent = open_rows[-1]
            remaining[parent] -= max(min(ends[row], ends[parent]) - begin, 0)
        open_rows.append(row)
    return np.maximum(remaining, 0)
