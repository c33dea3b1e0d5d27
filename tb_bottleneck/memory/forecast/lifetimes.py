"""Peaks with other lifetimes or sizes of blocks than the recorded ones."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tb_bottleneck.memory.blocks import Blocks
from tb_bottleneck.memory.recorded_memory import RecordedMemory
from tb_bottleneck.trace.table import Ints, Rows

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Lives:
    """Lifetimes of blocks. Lifetime i lasts from the memory event `opened[i]` to the event `closed[i]`, with `size[i]`
    bytes.

    A block may have several lifetimes. `closed` is at least the number of events if a lifetime ends with the
    recording."""

    opened: Ints
    closed: Ints
    size: Floats


def lives_of(blocks: Blocks, size: Floats | Ints) -> Lives:
    """Returns the recorded lifetimes of `blocks` with the sizes `size` (bytes) instead of the recorded sizes."""
    return Lives(blocks.opened, blocks.closed, np.asarray(size, np.float64))


def peak_of(memory: RecordedMemory, lives: Lives, fixed: float = 0.0) -> float:
    """Returns the largest number of bytes in use after any memory event. `fixed` bytes are in use all the time.

    The sizes and ends in `lives` may differ from the recorded ones."""
    rows = len(memory.events)
    change = np.zeros(rows + 2)
    np.add.at(change, lives.opened + 1, lives.size)
    np.subtract.at(change, np.minimum(lives.closed, rows) + 1, lives.size)
    in_use = np.cumsum(change)[1 : rows + 1]
    return fixed + float(in_use.max(initial=0.0))


def recomputed(blocks: Blocks, calls: Iterable[tuple[Rows, int]]) -> Lives:
    """Returns the lifetimes of `blocks` if each of `calls` freed some of its blocks at its end, as with checkpointing.

    A call is a pair: the rows of these blocks in `blocks`, and the row of the last memory event in the call. The
    backward pass computes the blocks again: they exist from the event with which it frees the first of them in the
    recording, until just after their own recorded free."""
    closed = blocks.closed.copy()
    more: list[Ints] = []
    for rows, last in calls:
        if not len(rows):
            continue
        again = int(blocks.closed[rows].min())
        closed[rows] = last
        more.append(np.stack((np.full(len(rows), again), blocks.closed[rows] + 1, rows)))
    if not more:
        return lives_of(blocks, blocks.size)
    second = np.concatenate(more, axis=1)
    size = blocks.size.astype(np.float64)
    return Lives(
        np.concatenate((blocks.opened, second[0])),
        np.concatenate((closed, second[1])),
        np.append(size, size[second[2]]),
    )
