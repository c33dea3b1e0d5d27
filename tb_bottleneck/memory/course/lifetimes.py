"""The largest blocks of the step of the peak, and those that exist longest, with their lifetimes."""

import numpy as np

from tb_bottleneck.base.record import Record
from tb_bottleneck.memory.categories import CATEGORIES
from tb_bottleneck.memory.course.recorded_memory import RecordedMemory, step_of_peak
from tb_bottleneck.memory.sites import Site
from tb_bottleneck.trace.table import Ints, Rows

LARGEST = 40
LONGEST = 20
MIN_SHARE = 1e-3
"""Share of the peak below which the lifetime of a block does not matter."""


class Lifetime(Record, frozen=True):
    """One block. Times are in ns since the beginning of the step; None if it exists before or after the step."""

    site: Site
    begin: int | None
    end: int | None


def lifetimes_of(memory: RecordedMemory, edges: Ints) -> list[Lifetime]:
    """Returns blocks that exist in the step of the peak, the largest first; none if the peak lies outside the steps.

    They are the LARGEST largest ones, and of those that the step allocates and frees the LONGEST that exist longest.
    `edges` has the begin of each step and the end of the last one, in ns.
    """
    step = step_of_peak(memory, edges)
    if step is None:
        return []
    begin, end = step
    blocks = memory.blocks
    inside = np.flatnonzero((blocks.begin < end) & (blocks.end >= begin))
    chosen = _chosen(memory, inside, begin, end)
    chosen = chosen[np.argsort(-blocks.size[chosen], kind="stable")]
    keys = memory.place_keys(chosen).tolist()
    found = []
    for row, key in zip(chosen.tolist(), keys, strict=True):
        size = int(blocks.size[row])
        site = Site(CATEGORIES[memory.category[row]], memory.places.place(key), size, 1, size)
        opened, closed = int(blocks.begin[row]), int(blocks.end[row])
        found.append(
            Lifetime(site, opened - begin if opened >= begin else None, closed - begin if closed < end else None)
        )
    return found


def _chosen(memory: RecordedMemory, rows: Rows, begin: int, end: int) -> Rows:
    blocks = memory.blocks
    largest = rows[np.argsort(-blocks.size[rows], kind="stable")[:LARGEST]]
    brief = rows[(blocks.begin[rows] >= begin) & (blocks.end[rows] < end)]
    brief = brief[blocks.size[brief] >= MIN_SHARE * memory.account.peak]
    length = blocks.end[brief] - blocks.begin[brief]
    return np.union1d(largest, brief[np.argsort(-length, kind="stable")[:LONGEST]])
