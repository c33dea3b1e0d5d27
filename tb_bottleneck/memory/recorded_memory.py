"""The common interface of memory recorded in a trace and in an allocator snapshot."""

from typing import Protocol

import numpy as np

from tb_bottleneck.memory.blocks import Blocks
from tb_bottleneck.memory.categories import MemoryAccount
from tb_bottleneck.memory.sites import Place
from tb_bottleneck.trace.columns.memory_events import MemoryEvents
from tb_bottleneck.trace.table import Ints, Rows


class Places(Protocol):
    """Decodes keys to the places in the program that allocated blocks."""

    def place(self, key: list[int]) -> Place:
        """Returns the place with this key, a row of `place_keys`."""
        ...


class RecordedMemory(Protocol):
    """One device's memory over time."""

    @property
    def account(self) -> MemoryAccount:
        """The memory by category at the peak."""
        ...

    @property
    def events(self) -> MemoryEvents:
        """Allocations and frees, by time."""
        ...

    @property
    def blocks(self) -> Blocks:
        """Blocks with their lifetimes."""
        ...

    @property
    def category(self) -> Ints:
        """The category of each block, as a row of CATEGORIES."""
        ...

    @property
    def in_use(self) -> Ints:
        """Bytes in tensors after each event, without estimates."""
        ...

    @property
    def peak_row(self) -> int | None:
        """The row of the event with the peak; None without events."""
        ...

    @property
    def places(self) -> Places:
        """The places that allocated the blocks."""
        ...

    def place_keys(self, chosen: Rows) -> Ints:
        """Returns the keys of the places of the blocks `chosen`: one row per block."""
        ...


def step_of_peak(memory: RecordedMemory, edges: Ints) -> tuple[int, int] | None:
    """Returns the start and the end of the step with the peak, in ns, or None if the peak lies outside the steps.

    `edges` has the start of each step and the end of the last step, in ns.
    """
    if memory.peak_row is None or len(edges) < 2:
        return None
    at = int(np.searchsorted(edges, memory.events.time[memory.peak_row], side="right")) - 1
    return (int(edges[at]), int(edges[at + 1])) if 0 <= at < len(edges) - 1 else None
