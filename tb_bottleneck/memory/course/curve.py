"""The memory in use over the step of the peak, by category."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.base.order_statistics import distinct_values
from tb_bottleneck.memory.categories import CATEGORIES, Category
from tb_bottleneck.memory.course.recorded_memory import RecordedMemory, step_of_peak
from tb_bottleneck.trace.table import Ints, Rows

POINTS = 160
"""Points of a curve: one for every few pixels. Each is the highest of the events that it stands for."""
MAX_EVENTS = 2_000_000


@dataclass(frozen=True, eq=False)
class MemoryCurve:
    """Bytes in use by category at some times, in ns since the beginning of the step. `peak` is the point of the peak.

    Constant parts, such as parameters from before the recording, are in it. Cached memory is not. `length` is that of
    the step, in ns.
    """

    length: int
    times: Ints
    bytes_of: Mapping[Category, Ints]
    peak: int


def curve_of(memory: RecordedMemory, edges: Ints) -> MemoryCurve | None:
    """Returns the curve of the step that contains the peak, or None if the peak lies outside the steps.

    `edges` has the begin of each step and the end of the last one, in ns.
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
    alive = memory.blocks.alive(peak_row)
    sums = np.bincount(memory.category[alive], memory.blocks.size[alive], minlength=len(CATEGORIES))
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
    """Returns the bytes of each category after each of these events: one row per category."""
    blocks, count = memory.blocks, last - first
    change = np.zeros((len(CATEGORIES), count + 1), np.int64)
    open_at = np.clip(blocks.opened - first, 0, count)
    close_at = np.clip(blocks.closed - first, 0, count)
    np.add.at(change, (memory.category, open_at), blocks.size)
    np.subtract.at(change, (memory.category, close_at), blocks.size)
    return np.cumsum(change, axis=1)[:, :count]


def _highest(total: Ints, peak: int) -> Rows:
    """Returns at most POINTS rows: the highest of each group of neighbours, and the peak."""
    groups = np.array_split(np.arange(len(total)), min(POINTS, len(total)))
    highest = [int(group[np.argmax(total[group])]) for group in groups]
    return distinct_values(np.array([*highest, peak], np.intp))
