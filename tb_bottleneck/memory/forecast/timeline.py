"""The memory in use over time if blocks had other sizes or lifetimes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tb_bottleneck.memory.blocks import Blocks
from tb_bottleneck.memory.trace_memory import TraceMemory
from tb_bottleneck.trace.table import Ints

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Lives:
    """Lifetimes of blocks between rows of the memory events, with their sizes. A block may have several.

    A life that ends with the recording is closed at the number of events, or after it.
    """

    opened: Ints
    closed: Ints
    size: Floats


def lives_of(blocks: Blocks, size: Floats | Ints) -> Lives:
    """Returns the recorded lifetimes with other sizes."""
    return Lives(blocks.opened, blocks.closed, np.asarray(size, np.float64))


def peak_of(memory: TraceMemory, lives: Lives, fixed: float = 0.0) -> float:
    """Returns the most bytes in use after any event. `fixed` bytes are in use all the time."""
    rows = len(memory.events)
    change = np.zeros(rows + 2)
    np.add.at(change, lives.opened + 1, lives.size)
    np.subtract.at(change, np.minimum(lives.closed, rows) + 1, lives.size)
    in_use = np.cumsum(change)[1 : rows + 1]
    return fixed + float(in_use.max(initial=0.0))
