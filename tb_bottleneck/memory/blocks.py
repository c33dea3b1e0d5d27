"""Blocks of memory with their lifetimes: each allocation paired with the free of the same address."""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.trace.columns.memory_events import MemoryEvents
from tb_bottleneck.trace.table import Bools, Ints, Table, column

ROUNDING = 512
"""Sizes of blocks on devices are multiples of this number of bytes (c10/cuda/CUDACachingAllocator.cpp,
kMinBlockSize)."""
BEFORE = np.iinfo(np.int64).min // 2
"""`begin` of a block that was allocated before the recording."""
AFTER = np.iinfo(np.int64).max // 2
"""`end` of a block that was not freed in the recording."""


@dataclass(frozen=True, eq=False)
class Blocks(Table):
    """The blocks of memory of one device, sorted by allocation. A block is an allocated piece of memory from its
    allocation to its free. A block that was allocated before the recording is known only if it is freed in the
    recording."""

    size: Ints = column("bytes", "size as the allocator counts it")
    begin: Ints = column("ns", "allocation, or BEFORE")
    end: Ints = column("ns", "free, or AFTER")
    opened: Ints = column("row of the memory events", "the allocation, or -1")
    closed: Ints = column("row of the memory events", "the free, or their number")
    thread: Ints = column("row of threads", "the allocating thread; the freeing one for blocks from before")

    @property
    def known_begin(self) -> Bools:
        """Mask of the blocks: True if the block was allocated in the recording."""
        return np.asarray(self.opened >= 0, np.bool_)

    @property
    def freed(self) -> Bools:
        """Mask of the blocks: True if the block was freed in the recording."""
        return np.asarray(self.end < AFTER, np.bool_)

    def alive(self, row: int) -> Bools:
        """Returns a mask of the blocks that exist just after the memory event with the index `row`."""
        return np.asarray((self.opened <= row) & (self.closed > row), np.bool_)


def blocks_of(events: MemoryEvents) -> Blocks:
    """Returns the blocks of one device. Each allocation is paired with the next event that has the same address.

    The next event is the free of the block or, if the free was lost, the next allocation at this address. A free
    without an allocation before it gives a block from before the recording."""
    order = np.argsort(events.address, kind="stable")
    address, allocates = events.address[order], events.size[order] > 0
    same_next = np.append(address[1:] == address[:-1], False)
    following = np.append(order[1:], 0)[: len(order)]
    opened = order[allocates]
    closed = np.where(same_next, following, len(events))[allocates]
    follows_allocation = np.append(False, allocates[:-1] & same_next[:-1])[: len(order)]
    stray = order[~allocates & ~follows_allocation]  # these free blocks from before the recording
    opened = np.concatenate((np.full(len(stray), -1), opened)).astype(np.int64)
    closed = np.concatenate((stray, closed)).astype(np.int64)
    row = np.where(opened >= 0, opened, closed)
    time = np.append(events.time, AFTER)
    return Blocks(
        size=np.abs(events.size)[row],
        begin=np.where(opened >= 0, time[opened], BEFORE),
        end=time[closed],
        opened=opened,
        closed=closed,
        thread=events.thread[row],
    ).take(np.lexsort((closed, opened)))


SAME_RESERVED = 0.98
"""Share of the most reserved bytes from which on an event may be the peak. A choice."""


def peak_row(reserved: Ints, in_use: Ints) -> int:
    """Returns the index of the memory event at the peak. `reserved` and `in_use` are bytes after each event.

    The peak has the most bytes in use among the events with at least SAME_RESERVED of the most reserved bytes: a small
    segment may be requested later, when little is in use. If several events have as many, the last one counts."""
    most_reserved = np.flatnonzero(reserved >= SAME_RESERVED * reserved.max())
    most = in_use[most_reserved].max()
    return int(most_reserved[np.flatnonzero(in_use[most_reserved] == most)[-1]])


def bytes_before(events: MemoryEvents, blocks: Blocks) -> int:
    """Returns the number of bytes that were allocated before the first event and are freed by no event; 0 without
    events."""
    if not len(events):
        return 0
    return max(int(events.allocated[0] - events.size[0]) - int(blocks.size[~blocks.known_begin].sum()), 0)
