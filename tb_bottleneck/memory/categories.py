"""The categories of memory, and the account of a peak by category."""

from collections.abc import Mapping
from enum import Enum

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.trace.table import Ints


class Category(str, Enum):
    """What memory is used for, in the order in which a MemoryAccount lists it. The values are those of the report's
    `memory.parts`.

    KEPT are caches that grow in each pass, such as keys and values. GRAPHS are private pools of CUDA graphs.
    FRAGMENTATION is free memory that the allocator could not use, and CACHE is the allocator's other free memory.
    OUTSIDE_TORCH is memory that the driver counts, but torch's allocator does not."""

    PARAMETERS = "parameters"
    GRADIENTS = "gradients"
    OPTIMIZER = "optimizer"
    BEFORE_RECORDING = "before_recording"
    ACTIVATIONS = "activations"
    TEMPORARIES = "temporaries"
    INPUTS = "inputs"
    KEPT = "kept"
    COMMUNICATION = "communication"
    WORKSPACES = "workspaces"
    GRAPHS = "graphs"
    FRAGMENTATION = "fragmentation"
    CACHE = "cache"
    OUTSIDE_TORCH = "outside_torch"
    UNEXPLAINED = "unexplained"


CATEGORIES = tuple(Category)
INDEX = {category: index for index, category in enumerate(CATEGORIES)}

# cuBLAS needs a workspace for each matrix product. torch allocates one workspace per handle and stream. These are the
# default sizes (aten/src/ATen/cuda/CublasHandlePool.cpp: 4096:2:16:8, and eight of 4 MiB on Hopper; 76 MiB for
# hipBLASLt on MI300).
WORKSPACE_BYTES = (8_519_680, 33_554_432, 79_691_776)


class MemoryAccount(Record, frozen=True):
    """The memory of one device at its peak, divided into categories.

    `bytes_of` has the bytes by category, which sum to the memory in use. `estimated` is the part of these bytes that is
    only estimated: on the CPU, bytes that were allocated before the recording, because the totals of the CPU leave
    these bytes out. `capacity` is the size of the device's memory in bytes; None if unknown. `source` is "trace",
    "snapshot" or "telemetry"."""

    bytes_of: Mapping[Category, int]
    source: str
    kind: str
    """Kind of the device: "cuda", "rocm", "cpu" or another one."""

    allocated: int
    """Bytes in tensors at the peak, as the allocator counts them."""

    reserved: int
    """Bytes that the allocator has requested from the driver at the peak; on the CPU, the bytes in tensors."""

    estimated: int = 0
    capacity: int | None = None

    @property
    def peak(self) -> int:
        """Bytes in use at the peak: the sum of the categories."""
        return sum(self.bytes_of.values())

    @property
    def headroom(self) -> int | None:
        """Bytes of the device's memory that were still free at the peak; None if `capacity` is unknown."""
        return None if self.capacity is None else max(self.capacity - self.peak, 0)

    @property
    def overhead(self) -> float:
        """Ratio of the reserved bytes to the bytes in tensors, at the peak."""
        return self.reserved / max(self.allocated, 1)

    def share(self, category: Category) -> float:
        """Returns the fraction (0 to 1) of the bytes at the peak that belong to `category`."""
        return self.bytes_of.get(category, 0) / max(self.peak, 1)

    @property
    def rows(self) -> list[tuple[Category, int]]:
        """Pairs of category and bytes, in the order of CATEGORIES. Categories without bytes are left out."""
        return [(category, self.bytes_of[category]) for category in CATEGORIES if self.bytes_of.get(category)]


MOST_SIZES = 3
RECUR = 0.5
"""If at least this share of the bytes is in sizes that occur more than once, the blocks are assumed to be the weights
of similar layers. A choice."""


class EarlierBlocks(Record, frozen=True):
    """A summary of blocks that were allocated before the recording and whose category is not known for certain: their
    total size in `bytes`, and their number `count`."""

    bytes: int
    count: int
    sizes: tuple[tuple[int, int], ...]
    """(number of blocks, size in bytes) of the MOST_SIZES sizes with the most bytes, sorted by total bytes."""

    guess: str
    """The probable kind: "weights" (the run has no backward pass), "untrained" (weights that are not trained, in a run
    with backward passes), or "" if unknown."""


def earlier_blocks(size: Ints, trains: bool) -> EarlierBlocks:
    """Returns a summary of blocks that were allocated before the recording. `size` has their sizes in bytes. `trains`
    is True if backward passes were recorded."""
    sizes, counts = np.unique(size, return_counts=True)
    order = np.argsort(-sizes * counts, kind="stable")[:MOST_SIZES]
    recur = int((sizes * counts)[counts > 1].sum()) >= RECUR * int(size.sum())
    listed = tuple(zip(counts[order].tolist(), sizes[order].tolist(), strict=True))
    return EarlierBlocks(int(size.sum()), len(size), listed, ("untrained" if trains else "weights") if recur else "")
