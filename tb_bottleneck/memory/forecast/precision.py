"""Predicts the peak of the memory with automatic mixed precision, and with checkpointing of repeated modules.

With checkpointing, activations of a module are freed after the forward pass, and computed again in the backward pass.

Computes the peak if the lifetimes or sizes of blocks differ from the recorded ones.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tb_bottleneck.memory.blocks import Blocks
from tb_bottleneck.memory.categories import INDEX, Category
from tb_bottleneck.memory.forecast.allocation_shapes import chains_of
from tb_bottleneck.memory.phases import Phase
from tb_bottleneck.memory.recorded_memory import RecordedMemory
from tb_bottleneck.memory.sites import MODULE
from tb_bottleneck.memory.trace_memory import TraceMemory
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Bools, Ints, Rows

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


# Operators whose results stay in 32 bits under autocast, or are added to a 32-bit residual (pytorch docs, torch.amp, op
# eligibility). The results of other operators have 16 bits or the type of the operator's input, or are kept only as a
# 16-bit copy for the next matrix product, as the results of normalisations are.
HIGH = r"(?:embedding|\w*softmax\w*|\w*loss\w*|add_?|sum|mean|norm|exp|log|pow|prod|cumsum|\w*cross_entropy\w*)"
_HIGH = re.compile(f"^aten::{HIGH}$")
_SCOPE = (Phase.FORWARD, Phase.BACKWARD)


def mixed_precision_peaks(memory: TraceMemory) -> tuple[float, float, float] | None:
    """Returns (lowest, expected, highest) peak with autocast in bytes; None if the run does not train, already uses
    16-bit types, or shows no fp32 inputs.

    Lowest: all activations have 16 bits. Highest: all activations keep 32 bits, and the cast weights are added.
    Expected: only activations of losses, normalisations, softmax and residuals keep 32 bits, and the cast weights are
    added.
    """
    types = {text for _, text, _ in memory.trace.signatures}
    if not memory.phases.trains or any(b"BFloat16" in text or b"Half" in text for text in types):
        return None
    if not any(b'"float"' in text for text in types):
        return None
    blocks = memory.blocks
    phase = memory.phases.phase[memory.phases.at(blocks.begin)]
    kinds = [INDEX[kind] for kind in (Category.ACTIVATIONS, Category.TEMPORARIES)]
    floating = np.isin(memory.category, kinds) & np.isin(phase, _SCOPE) & blocks.known_begin
    casts = memory.gradient_bytes / 2

    def peak(halved: Bools, added: float) -> float:
        return peak_of(memory, lives_of(blocks, blocks.size * np.where(halved, 0.5, 1.0)), memory.earlier + added)

    low = floating & ~_stays(memory)
    return peak(floating, 0.0), peak(low, casts), peak(np.zeros(len(blocks), np.bool_), casts)


def _stays(memory: TraceMemory) -> Bools:
    """Returns a mask of the blocks that stay in 32 bits with autocast, because an operator that autocast runs in fp32
    allocates them."""
    trace, chain = memory.trace, chains_of(memory.trace, memory.blocks)
    names = trace.events.name[np.maximum(chain, 0)]
    stays = name_matches(trace.names, names.reshape(-1), lambda name: bool(_HIGH.match(name))).reshape(chain.shape)
    return np.asarray((stays & (chain >= 0)).any(axis=1), np.bool_)


_INSTANCE = re.compile(r"^nn\.Module: (.+)_(\d+)$")


@dataclass(frozen=True)
class Checkpointed:
    """The effect of checkpointing all instances of one class of modules. `module` is the name of the class, and `peak`
    is the new peak in bytes of tensors."""

    module: str
    peak: float


def checkpointed_peak(memory: TraceMemory) -> Checkpointed | None:
    """Returns the class of modules whose checkpointing lowers the peak most; None if no class lowers the peak.

    Only classes with several instances are tried. Checkpointing a single module does not help: during its own backward
    pass, all its activations exist again.
    """
    if not memory.phases.trains:
        return None
    now = peak_of(memory, lives_of(memory.blocks, memory.blocks.size), memory.earlier)
    tried = [
        Checkpointed(name, peak_of(memory, recomputed(memory.blocks, _calls(memory, rows)), memory.earlier))
        for name, rows in _repeated(memory).items()
    ]
    best = min(tried, key=lambda it: it.peak, default=None)
    return best if best is not None and best.peak < now else None


def _repeated(memory: TraceMemory) -> dict[str, Rows]:
    """Returns a dict: name of a module class -> event rows of its calls in forward passes. Only classes with several
    instances are included."""
    trace = memory.trace
    rows = trace.rows(Kind.PYTHON)
    rows = rows[name_matches(trace.names, trace.events.name[rows], lambda name: bool(_INSTANCE.match(name)))]
    rows = rows[memory.phases.phase[memory.phases.at(trace.events.start[rows])] == Phase.FORWARD]
    by_class: defaultdict[str, list[int]] = defaultdict(list)
    instances: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows.tolist():
        name = trace.names[trace.events.name[row]]
        kind = name.removeprefix(MODULE).rpartition("_")[0]
        by_class[kind].append(row)
        instances[kind].add(name)
    return {kind: np.array(own, np.intp) for kind, own in by_class.items() if len(instances[kind]) > 1}


def _calls(memory: TraceMemory, calls: Rows) -> Iterator[tuple[Rows, int]]:
    """Yields a pair for each call of a module. `calls` has the event rows of these calls.

    The first value has the rows (in the blocks) of the activations that the call keeps, except the last one, which is
    the result of the call. The second value is the row of the last memory event in the call."""
    blocks, events = memory.blocks, memory.trace.events
    activations = memory.category == INDEX[Category.ACTIVATIONS]
    firsts = np.searchsorted(blocks.begin, events.start[calls], side="left").tolist()
    lasts = np.searchsorted(blocks.begin, events.end[calls], side="left").tolist()
    for call, first, last in zip(calls.tolist(), firsts, lasts, strict=True):
        end = int(events.end[call])
        inside = activations[first:last] & (blocks.end[first:last] > end)
        inside &= blocks.thread[first:last] == events.thread[call]
        rows = first + np.flatnonzero(inside)[:-1]
        yield rows, int(np.searchsorted(memory.events.time, end, side="right")) - 1
