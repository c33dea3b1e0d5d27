"""The memory in use over the steps of a recording."""

import numpy as np

from tb_bottleneck.base.record import Record
from tb_bottleneck.memory.course.recorded_memory import RecordedMemory
from tb_bottleneck.trace.table import Ints

POINTS = 160
"""Points of a history. With more steps, each point stands for several."""


class MemoryHistory(Record, frozen=True, eq=False):
    """Bytes in tensors by step: the most during it, and those at its end. Each point stands for `steps` steps."""

    peaks: Ints
    ends: Ints
    steps: int


def history_of(memory: RecordedMemory, edges: Ints) -> MemoryHistory | None:
    """Returns the history, or None with fewer than two steps.

    `edges` has the begin of each step and the end of the last one, in ns. Bytes from before the recording that are
    estimated are in both columns.
    """
    count = len(edges) - 1
    if count < 2 or memory.peak_row is None:
        return None
    in_use = memory.in_use + memory.account.estimated
    at = np.searchsorted(memory.events.time, edges, side="left")
    before = int(in_use[0] - memory.events.size[0])
    at_edges = np.where(at > 0, in_use[np.maximum(at, 1) - 1], before)
    # The bytes at its begin belong to a step too: it may only free.
    values = np.append(in_use, 0)
    highest = np.maximum.reduceat(values, np.minimum(at, len(in_use)))[:-1]
    peaks = np.where(at[1:] > at[:-1], np.maximum(highest, at_edges[:-1]), at_edges[:-1])
    steps = -(-count // POINTS)
    first = np.arange(0, count, steps)
    last = np.minimum(first + steps, count)
    return MemoryHistory(np.maximum.reduceat(peaks, first), at_edges[last], steps)
