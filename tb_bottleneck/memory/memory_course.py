"""How the memory changes over time: within the step that contains the peak (by category and by block), and over all
steps."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.base.arrays import distinct_values
from tb_bottleneck.base.measure import Record
from tb_bottleneck.memory.categories import CATEGORIES, Category
from tb_bottleneck.memory.recorded_memory import RecordedMemory, step_of_peak
from tb_bottleneck.memory.sites import Site
from tb_bottleneck.trace.table import Ints, Rows

POINTS = 160
"""Maximum number of points of a curve or a history: one for every few pixels. Each point of a curve is the highest
value of a group of events. With more steps than POINTS, a point of a history stands for several steps."""
MAX_EVENTS = 2_000_000


@dataclass(frozen=True, eq=False)
class MemoryCurve:
    """Bytes in use by category, during one step, at `times` (ns since the start of the step).

    `peak` is the index of the peak in `times`. Memory that does not change, such as parameters from before the
    recording, is included. The allocator's unused memory (cache and fragmentation) is not included. `length` is the
    length of the step in ns."""

    length: int
    times: Ints
    bytes_of: Mapping[Category, Ints]
    peak: int


def curve_of(memory: RecordedMemory, edges: Ints) -> MemoryCurve | None:
    """Returns the curve of the step that contains the peak, or None if the peak lies outside the steps or the step has
    more than MAX_EVENTS events.

    `edges` has the start of each step and the end of the last step, in ns.
    """
    step, peak_row = step_of_peak(memory, edges), memory.peak_row
    if step is None or peak_row is None:
        return None
    time = memory.events.time
    first, last = np.searchsorted(time, step, side="left").tolist()
    if not 0 < last - first <= MAX_EVENTS:
        return None
    in_use = _by_category(memory, first, last)
    rows = _highest(in_use.sum(axis=0), peak_row - first)
    constant = dict(memory.account.bytes_of)
    sums = memory.categories_at_peak
    bytes_of: dict[Category, Ints] = {}
    for index, category in enumerate(CATEGORIES):
        if category in (Category.CACHE, Category.FRAGMENTATION):
            continue
        before = max(constant.get(category, 0) - int(sums[index]), 0)  # from before the recording
        values = in_use[index][rows] + before
        if values.any():
            bytes_of[category] = values
    at_peak = int(np.searchsorted(rows, peak_row - first))
    return MemoryCurve(step[1] - step[0], time[first + rows] - step[0], bytes_of, at_peak)


def _by_category(memory: RecordedMemory, first: int, last: int) -> Ints:
    """Returns the bytes in use by category after the memory events `first` to `last` - 1, with shape (categories,
    events)."""
    blocks, count = memory.blocks, last - first
    change = np.zeros((len(CATEGORIES), count + 1), np.int64)
    open_at = np.clip(blocks.opened - first, 0, count)
    close_at = np.clip(blocks.closed - first, 0, count)
    np.add.at(change, (memory.category, open_at), blocks.size)
    np.subtract.at(change, (memory.category, close_at), blocks.size)
    return np.cumsum(change, axis=1)[:, :count]


def _highest(total: Ints, peak: int) -> Rows:
    """Returns the indices of at most POINTS + 1 values of `total`: the highest of each group of neighbours, and
    `peak`."""
    groups = np.array_split(np.arange(len(total)), min(POINTS, len(total)))
    highest = [int(group[np.argmax(total[group])]) for group in groups]
    return distinct_values(np.array([*highest, peak], np.intp))


class MemoryHistory(Record, frozen=True, eq=False):
    """Bytes in tensors over the steps: `peaks` has the highest value during a step, `ends` the value at the end of the
    step.

    If `steps` is above 1, each value stands for this number of consecutive steps."""

    peaks: Ints
    ends: Ints
    steps: int


def history_of(memory: RecordedMemory, edges: Ints) -> MemoryHistory | None:
    """Returns the bytes in tensors over the steps, or None if there are fewer than two steps or no peak is known.

    `edges` has the start of each step and the end of the last step, in ns. The peaks and ends in the result include the
    estimated bytes from before the recording. With more than POINTS steps, one value stands for several steps.
    """
    count = len(edges) - 1
    if count < 2 or memory.peak_row is None:
        return None
    in_use = memory.in_use + memory.account.estimated
    at = np.searchsorted(memory.events.time, edges, side="left")
    before = int(in_use[0] - memory.events.size[0])
    at_edges = np.where(at > 0, in_use[np.maximum(at, 1) - 1], before)
    # The bytes at the start of a step belong to the step, too, because the step may only free memory.
    values = np.append(in_use, 0)
    highest = np.maximum.reduceat(values, np.minimum(at, len(in_use)))[:-1]
    peaks = np.where(at[1:] > at[:-1], np.maximum(highest, at_edges[:-1]), at_edges[:-1])
    steps = -(-count // POINTS)
    first = np.arange(0, count, steps)
    last = np.minimum(first + steps, count)
    return MemoryHistory(np.maximum.reduceat(peaks, first), at_edges[last], steps)


LARGEST = 40
LONGEST = 20
MIN_SHARE = 1e-3
"""Share of the peak below which the lifetime of a block does not matter."""


class Lifetime(Record, frozen=True):
    """The lifetime of one block, which `site` describes. `begin` and `end` are in ns since the start of the step.
    `begin` is None if the block already exists before the step, `end` is None if it still exists after the step."""

    site: Site
    begin: int | None
    end: int | None


def lifetimes_of(memory: RecordedMemory, edges: Ints) -> list[Lifetime]:
    """Returns blocks that exist in the step that contains the peak, the largest first; empty if the peak lies outside
    the steps.

    The result has the largest blocks (at most LARGEST) and, among the blocks that the step allocates and frees, those
    with the longest lifetimes (at most LONGEST). `edges` has the start of each step and the end of the last step, in
    ns."""
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
        site = Site(CATEGORIES[memory.category[row]], memory.place(key), size, 1, size)
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
    return distinct_values(np.concatenate((largest, brief[np.argsort(-length, kind="stable")[:LONGEST]])))


class MemoryCourse(Record, frozen=True, eq=False):
    """How the memory changes over time. `curve` and `lifetimes` describe the step with the peak, `history` all steps.

    A field is None or empty if the recording does not show it."""

    curve: MemoryCurve | None
    lifetimes: list[Lifetime]
    history: MemoryHistory | None


def course_of(memory: RecordedMemory, edges: Ints) -> MemoryCourse:
    """Returns how `memory` changes over time. `edges` has the start of each step and the end of the last step, in
    ns."""
    return MemoryCourse(curve_of(memory, edges), lifetimes_of(memory, edges), history_of(memory, edges))
