"""The memory of one device over time. `trace_memory.py` reads it from a trace, `snapshot/snapshot_memory.py` from an
allocator snapshot."""

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from tb_bottleneck.memory.blocks import Blocks, blocks_of, peak_row
from tb_bottleneck.memory.categories import CATEGORIES, MemoryAccount
from tb_bottleneck.memory.sites import Place, Site, group_sites
from tb_bottleneck.trace.columns.memory_events import MemoryEvents
from tb_bottleneck.trace.table import Bools, Ints, Rows


class RecordedMemory(ABC):
    """What a trace and an allocator snapshot have in common."""

    @property
    @abstractmethod
    def events(self) -> MemoryEvents:
        """Allocations and frees, sorted by time."""

    @property
    @abstractmethod
    def account(self) -> MemoryAccount:
        """The memory at the peak, divided into categories."""

    @property
    @abstractmethod
    def category(self) -> Ints:
        """The category of each block, as an index into CATEGORIES."""

    @property
    @abstractmethod
    def in_use(self) -> Ints:
        """Bytes in tensors after each of `events`. Estimated bytes from before the recording are not included."""

    @property
    @abstractmethod
    def earlier(self) -> int:
        """Bytes that were allocated before the recording and are freed by none of `events`."""

    @abstractmethod
    def place_keys(self, chosen: Rows) -> Ints:
        """Returns for each block in `chosen` (row numbers) the key of the place that allocated it: one row per
        block."""

    @abstractmethod
    def place(self, key: list[int]) -> Place:
        """Returns the place in the program with the key `key`, one row of `place_keys`."""

    @cached_property
    def blocks(self) -> Blocks:
        """The blocks that `events` allocate or free, with their lifetimes."""
        return blocks_of(self.events)

    @cached_property
    def peak_row(self) -> int | None:
        """The index in `events` of the peak; None without events."""
        return peak_row(self.events.reserved, self.in_use) if len(self.events) else None

    @cached_property
    def at_peak(self) -> Bools:
        """A mask of the blocks that exist at the peak."""
        return np.zeros(len(self.blocks), np.bool_) if self.peak_row is None else self.blocks.alive(self.peak_row)

    def bytes_at_peak(self, chosen: Bools) -> int:
        """Returns the total bytes of the blocks in the mask `chosen` that exist at the peak."""
        return int(self.blocks.size[chosen & self.at_peak].sum())

    @cached_property
    def categories_at_peak(self) -> Ints:
        """Bytes at the peak of the blocks of each category, in the order of CATEGORIES. Blocks that `events` neither
        allocate nor free are not included."""
        alive = self.at_peak
        sums = np.bincount(self.category[alive], self.blocks.size[alive], minlength=len(CATEGORIES))
        return sums.astype(np.int64)

    def sites(self, chosen: Bools) -> list[Site]:
        """Returns the places that allocated the blocks in the mask `chosen`, by category, the one with the most bytes
        first."""
        rows = np.flatnonzero(chosen)
        return group_sites(
            np.column_stack((self.category[rows], self.place_keys(rows))), self.blocks.size[rows], self.place
        )


def step_of_peak(memory: RecordedMemory, edges: Ints) -> tuple[int, int] | None:
    """Returns (start, end) in ns of the step with the peak; None if the peak lies outside the steps.

    `edges` has the start of each step and the end of the last step, in ns."""
    if memory.peak_row is None or len(edges) < 2:
        return None
    at = int(np.searchsorted(edges, memory.events.time[memory.peak_row], side="right")) - 1
    return (int(edges[at]), int(edges[at + 1])) if 0 <= at < len(edges) - 1 else None
