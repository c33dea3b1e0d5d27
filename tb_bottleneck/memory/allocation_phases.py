"""The roles of the blocks of a trace: what the program was doing when it allocated and freed each block."""

import re

import numpy as np

from tb_bottleneck.base.arrays import distinct_values
from tb_bottleneck.memory.block_roles import Calls, Role
from tb_bottleneck.memory.blocks import Blocks
from tb_bottleneck.memory.categories import INDEX, WORKSPACE_BYTES, Category
from tb_bottleneck.memory.phases import Phase, Phases
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.nesting import innermost
from tb_bottleneck.trace.table import Bools, Ints, by_thread
from tb_bottleneck.trace.trace import Trace

# Scopes of collectives and of the wrappers that allocate their buffers (torch/csrc/distributed/c10d/Types.hpp and
# torch/distributed/fsdp).
_COMMUNICATES = re.compile(r"^(?:nccl|gloo|c10d|_c10d_functional|record_param_comms|FullyShardedDataParallel|FSDP)\b")
_MULTIPLIES = re.compile(r"^aten::(?:addmm|mm|bmm|baddbmm|addbmm|addmv|mv|_addmm_activation|_scaled_mm)(?:_|$)")
_ROLES = {
    Phase.FORWARD: Role.FORWARD,
    Phase.BACKWARD: Role.BACKWARD,
    Phase.OPTIMIZER: Role.OPTIMIZER,
    Phase.ZERO_GRAD: Role.ZERO_GRAD,
    Phase.LOADING: Role.LOADING,
    Phase.PREPARATION: Role.LOADING,
    Phase.OTHER: Role.OTHER,
}


def calls_of(trace: Trace, blocks: Blocks, phases: Phases) -> Calls:
    """Returns the blocks of a trace with the Role of each allocation and free, which follows from the phase at that
    time."""
    interval = phases.at(blocks.begin)
    roles = np.array([_ROLES[kind] for kind in Phase], np.int64)
    brief = np.asarray(blocks.end <= _scope_ends(trace, blocks, phases, interval), np.bool_)
    opened = np.where(blocks.known_begin, roles[phases.phase[interval]], Role.UNKNOWN)
    opened[brief & (opened == Role.LOADING)] = Role.OTHER  # freed before the forward pass, so not part of the batch
    opened[communicates(trace, blocks)] = Role.COMMUNICATION
    opened[workspaces(trace, blocks)] = Role.WORKSPACE
    closed = np.where(blocks.freed, roles[phases.phase[phases.at(blocks.end)]], Role.UNKNOWN)
    return Calls(blocks, opened, closed, phases.starts[phases.phase == Phase.OPTIMIZER], brief)


def communicates(trace: Trace, blocks: Blocks) -> Bools:
    """Returns a mask of the blocks that a collective operation or its wrapper allocates."""
    return _allocated_in(trace, blocks, _COMMUNICATES)


def workspaces(trace: Trace, blocks: Blocks) -> Bools:
    """Returns a mask of the blocks that are workspaces of cuBLAS. They have a default size, are allocated by a matrix
    multiplication, and are not freed."""
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
    """Returns for each block the time (ns) at which the phase that allocates the block ends. A block that is freed by
    then is temporary. `interval` has the index of this phase for each block.

    If the run does not train, the end of a forward pass is unknown. For blocks of forward passes, the result is then
    the end of the outermost operator that allocates the block."""
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


def constructed(blocks: Blocks, phases: Phases, category: Ints) -> Bools:
    """Returns a mask of the blocks that the construction of the model allocates. They are allocated in a PREPARATION
    phase before the first backward pass, are never freed, and have the sizes of gradients. `category` has the category
    of each block, as an index into CATEGORIES."""
    backward = phases.starts[phases.phase == Phase.BACKWARD]
    if not len(backward):
        return np.zeros(len(blocks), np.bool_)
    gradients = distinct_values(blocks.size[category == INDEX[Category.GRADIENTS]])
    early = (
        blocks.known_begin & (blocks.begin < backward[0]) & (phases.phase[phases.at(blocks.begin)] == Phase.PREPARATION)
    )
    return np.asarray(early & ~blocks.freed & np.isin(blocks.size, gradients), np.bool_)
