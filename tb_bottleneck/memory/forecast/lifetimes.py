"""Computes the peak if the lifetimes or sizes of blocks differ from the recorded ones."""

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

    A block may have several lifetimes. An `opened` of -1 is before the first event. A lifetime with `closed[i]` of at
    least the number of events lasts until the end of the recording."""

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
    """Returns the lifetimes of `blocks` with checkpointing of `calls`: each call of a module frees some of its blocks
    at its end, and the backward pass computes these blocks again.

    A call is a pair: the rows of its freed blocks in `blocks`, and the row of the last memory event in the call. The
    second lifetime of all blocks of a call begins at the event that frees the first of them in the recording. The
    second lifetime of a block ends just after the recorded free of the block."""
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
