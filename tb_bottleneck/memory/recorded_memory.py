"""The common interface of memory recorded in a trace and in an allocator snapshot."""

from typing import Protocol

import numpy as np

from tb_bottleneck.memory.blocks import Blocks
from tb_bottleneck.memory.categories import MemoryAccount
from tb_bottleneck.memory.sites import Place
from tb_bottleneck.trace.columns.memory_events import MemoryEvents
from tb_bottleneck.trace.table import Ints, Rows


class Places(Protocol):
    """Translates keys into places in the program that allocated blocks. A key is a list of integers."""

    def place(self, key: list[int]) -> Place:
        """Returns the place with the key `key`, which is one row of `RecordedMemory.place_keys`."""
        ...


class RecordedMemory(Protocol):
    """The memory of one device over time, as recorded in a trace or a snapshot."""

    @property
    def account(self) -> MemoryAccount:
        """The memory at the peak, divided into categories."""
        ...

    @property
    def events(self) -> MemoryEvents:
        """Allocations and frees, sorted by time."""
        ...

    @property
    def blocks(self) -> Blocks:
        """Blocks of memory with their lifetimes, from allocation to free."""
        ...

    @property
    def category(self) -> Ints:
        """The category of each block, as an index into CATEGORIES."""
        ...

    @property
    def in_use(self) -> Ints:
        """Bytes in tensors after each of `events`. Estimated bytes from before the recording are not included."""
        ...

    @property
    def peak_row(self) -> int | None:
        """The index in `events` of the event with the peak; None without events."""
        ...

    @property
    def places(self) -> Places:
        """Translates the keys that `place_keys` returns into places in the program."""
        ...

    def place_keys(self, chosen: Rows) -> Ints:
        """Returns for each block in `chosen` (indices into `blocks`) the key of the place that allocated it: one row
        per block."""
        ...


def step_of_peak(memory: RecordedMemory, edges: Ints) -> tuple[int, int] | None:
    """Returns (start, end) in ns of the step with the peak; None if the peak lies outside the steps.

    `edges` has the start of each step and the end of the last step, in ns."""
    if memory.peak_row is None or len(edges) < 2:
        return None
    at = int(np.searchsorted(edges, memory.events.time[memory.peak_row], side="right")) - 1
    return (int(edges[at]), int(edges[at + 1])) if 0 <= at < len(edges) - 1 else None
