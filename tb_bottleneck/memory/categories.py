"""Derives the category of each block of a trace from its lifetime, and defines the account of a peak."""

import re
from collections.abc import Mapping
from enum import Enum

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.base.order_statistics import distinct_values
from tb_bottleneck.memory.blocks import Blocks
from tb_bottleneck.memory.phases import Phase, Phases
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import innermost
from tb_bottleneck.trace.table import Bools, Ints, by_thread
from tb_bottleneck.trace.trace import Trace


class Category(str, Enum):
    """What memory is used for, in the order of the account. The values are those of the report's `memory.parts`."""

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

# Scopes of collectives and of the wrappers that allocate their buffers (torch/csrc/distributed/c10d/Types.hpp and
# torch/distributed/fsdp).
_COMMUNICATES = re.compile(r"^(?:nccl|gloo|c10d|_c10d_functional|record_param_comms|FullyShardedDataParallel|FSDP)\b")
# cuBLAS needs a workspace in each product; torch allocates it once per handle and stream, by these defaults
# (aten/src/ATen/cuda/CublasHandlePool.cpp: 4096:2:16:8, and eight of 4 MiB on Hopper; 76 MiB for hipBLASLt on MI300).
_MULTIPLIES = re.compile(r"^aten::(?:addmm|mm|bmm|baddbmm|addbmm|addmv|mv|_addmm_activation|_scaled_mm)(?:_|$)")
WORKSPACE_BYTES = (8_519_680, 33_554_432, 79_691_776)
# A block that a phase allocates and does not free is of this category; PREPARATION makes the batch.
_LASTING = {
    Phase.FORWARD: Category.ACTIVATIONS,
    Phase.BACKWARD: Category.GRADIENTS,
    Phase.OPTIMIZER: Category.OPTIMIZER,
    Phase.ZERO_GRAD: Category.GRADIENTS,
    Phase.LOADING: Category.INPUTS,
    Phase.PREPARATION: Category.INPUTS,
    Phase.OTHER: Category.UNEXPLAINED,
}


def categories_of(trace: Trace, blocks: Blocks, phases: Phases) -> Ints:
    """Returns the category of each block, as a row of CATEGORIES.

    A block that is freed in the phase that allocated it is temporary. Other blocks are gradients if a backward pass
    allocated them, optimizer state if the optimizer did, and activations if a forward pass did. Blocks of model
    construction (parameters) are never freed and have the sizes of gradients.
    """
    interval = phases.at(blocks.begin)
    phase = phases.phase[interval]
    lasting = np.array([INDEX[_LASTING[kind]] for kind in Phase], np.int64)[phase]
    brief = blocks.end <= _scope_ends(trace, blocks, phases, interval)
    category = np.where(brief, INDEX[Category.TEMPORARIES], lasting)
    category[_constructed(blocks, phases, interval, category)] = INDEX[Category.PARAMETERS]
    category[communicates(trace, blocks)] = INDEX[Category.COMMUNICATION]
    category[workspaces(trace, blocks)] = INDEX[Category.WORKSPACES]
    return _with_earlier(blocks, phases, category)


def communicates(trace: Trace, blocks: Blocks) -> Bools:
    """Returns a mask of the blocks that a collective or its wrapper allocates."""
    return _allocated_in(trace, blocks, _COMMUNICATES)


def workspaces(trace: Trace, blocks: Blocks) -> Bools:
    """Returns a mask of the blocks that are workspaces of cuBLAS: blocks of a default size that a matrix multiplication
    allocates and that are not freed."""
    sized = np.isin(blocks.size, WORKSPACE_BYTES) & ~blocks.freed
    return sized & _allocated_in(trace, blocks, _MULTIPLIES) if sized.any() else sized


def _allocated_in(trace: Trace, blocks: Blocks, pattern: re.Pattern[str]) -> Bools:
    """Returns a mask of the blocks that were allocated in an operator or annotation whose name matches `pattern`."""
    rows = trace.rows(Kind.CPU_OP, Kind.ANNOTATION)
    rows = rows[name_matches(trace.names, trace.events.name[rows], lambda name: bool(pattern.search(name)))]
    found = np.zeros(len(blocks), np.bool_)
    own = by_thread(np.arange(len(blocks)), blocks.thread)
    for thread, scopes in by_thread(rows, trace.events.thread).items():
        mine = own.get(thread, np.empty(0, np.intp))
        found[mine], _ = innermost(trace.events.start[scopes], trace.events.end[scopes], blocks.begin[mine])
    return found & blocks.known_begin


def _scope_ends(trace: Trace, blocks: Blocks, phases: Phases, interval: Ints) -> Ints:
    """Returns per block the time (ns) until which its free makes it temporary: the end of its phase. Without training,
    a forward pass has no end, and the end of the outermost operator is used."""
    ends = phases.ends[interval]
    if phases.trains:
        return ends
    own = by_thread(np.arange(len(blocks)), blocks.thread)
    scope = np.where(phases.phase[interval] == Phase.FORWARD, blocks.begin, ends)
    for thread, rows in by_thread(trace.rows(Kind.CPU_OP), trace.events.thread).items():
        mine = own.get(thread, np.empty(0, np.intp))
        if len(mine):
            reach = np.append(0, np.maximum.accumulate(trace.events.end[rows]))
            before = np.searchsorted(trace.events.start[rows], blocks.begin[mine], side="right")
            scope[mine] = np.maximum(scope[mine], reach[before])
    return np.asarray(scope, np.int64)


def _constructed(blocks: Blocks, phases: Phases, interval: Ints, category: Ints) -> Bools:
    """Returns a mask of the blocks of model construction."""
    backward = phases.starts[phases.phase == Phase.BACKWARD]
    if not len(backward):
        return np.zeros(len(blocks), np.bool_)
    gradients = distinct_values(blocks.size[category == INDEX[Category.GRADIENTS]])
    early = blocks.known_begin & (blocks.begin < backward[0]) & (phases.phase[interval] == Phase.PREPARATION)
    return np.asarray(early & ~blocks.freed & np.isin(blocks.size, gradients), np.bool_)


def _with_earlier(blocks: Blocks, phases: Phases, category: Ints) -> Ints:
    """Returns the categories with those of blocks from before the recording set by the phase that frees them."""
    earlier = ~blocks.known_begin
    freed_in = phases.phase[phases.at(blocks.end)]
    gradients = np.isin(freed_in, (Phase.ZERO_GRAD, Phase.OPTIMIZER))
    activations = np.isin(freed_in, (Phase.BACKWARD, Phase.FORWARD)) & phases.trains
    told = np.select(
        [gradients, activations],
        [INDEX[Category.GRADIENTS], INDEX[Category.ACTIVATIONS]],
        INDEX[Category.BEFORE_RECORDING],
    )
    return np.asarray(np.where(earlier, told, category), np.int64)


class MemoryAccount(Record, frozen=True):
    """The state of one device's memory at its peak.

    `bytes_of` has the bytes by category, which sum to the memory in use. `estimated` bytes are included: they were
    allocated before a recording on the CPU, whose totals leave them out. `capacity` is the size of the device's memory;
    None if unknown. `source` is trace, snapshot or telemetry.
    """

    bytes_of: Mapping[Category, int]
    source: str
    kind: str
    """cuda, rocm, cpu or another device."""

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
        """Bytes that were still free at the peak; None if the capacity is unknown."""
        return None if self.capacity is None else max(self.capacity - self.peak, 0)

    def share(self, category: Category) -> float:
        """Returns the share (0 to 1) of a category in the bytes at the peak."""
        return self.bytes_of.get(category, 0) / max(self.peak, 1)

    @property
    def rows(self) -> list[tuple[Category, int]]:
        """Pairs of category and bytes, without empty categories, in the order of CATEGORIES."""
        return [(category, self.bytes_of[category]) for category in CATEGORIES if self.bytes_of.get(category)]


MOST_SIZES = 3
RECUR = 0.5
"""If at least this share of the bytes is in sizes that occur more than once, blocks are assumed to be of similar
layers. A choice."""


class EarlierBlocks(Record, frozen=True):
    """Blocks from before the history whose category is not known for certain."""

    bytes: int
    count: int
    sizes: tuple[tuple[int, int], ...]
    """(number of blocks, size in bytes) of the MOST_SIZES sizes with the most bytes, sorted by total bytes."""

    guess: str
    """The probable kind: "weights", "untrained", or "" if unknown."""


def earlier_blocks(size: Ints, trains: bool) -> EarlierBlocks:
    """Returns a summary of blocks with these sizes in bytes. `trains`: backward passes were recorded."""
    sizes, counts = np.unique(size, return_counts=True)
    order = np.argsort(-sizes * counts, kind="stable")[:MOST_SIZES]
    recur = int((sizes * counts)[counts > 1].sum()) >= RECUR * int(size.sum())
    listed = tuple(zip(counts[order].tolist(), sizes[order].tolist(), strict=True))
    return EarlierBlocks(int(size.sum()), len(size), listed, ("untrained" if trains else "weights") if recur else "")
