"""The peak with automatic mixed precision."""

import re

import numpy as np

from tb_bottleneck.memory.categories import INDEX, Category
from tb_bottleneck.memory.forecast.shapes import Calls, chains_of
from tb_bottleneck.memory.forecast.timeline import lives_of, peak_of
from tb_bottleneck.memory.phases import Phase
from tb_bottleneck.memory.trace_memory import TraceMemory
from tb_bottleneck.order_statistics import distinct_values
from tb_bottleneck.trace.table import Bools

# Operators whose results stay in 32 bits under autocast, or are added to a 32-bit residual (pytorch docs, torch.amp, op
# eligibility). The others have 16 bits, follow the type of their input, or are only kept as a 16-bit copy for the next
# matrix product, as the results of normalisations are.
_HIGH = re.compile(
    r"^aten::(?:embedding|\w*softmax\w*|\w*loss\w*|add_?|sum|mean|norm|exp|log|pow|prod|cumsum|\w*cross_entropy\w*)$"
)
_SCOPE = (Phase.FORWARD, Phase.BACKWARD)


def mixed_precision_peaks(memory: TraceMemory) -> tuple[float, float, float] | None:
    """Returns the lowest, expected and highest peak with autocast, or None if the run has it or trains nothing.

    Lowest: all activations have 16 bits. Highest: none has, but the cast weights are added. Expected: those of losses,
    normalisations, softmax and residuals stay in 32 bits, and the cast weights are added.
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
    """Returns a mask of the blocks of operators whose results stay in 32 bits."""
    chain, calls = chains_of(memory.trace, memory.blocks), Calls(memory.trace)
    stays = {row: bool(_HIGH.match(calls.of(row).name)) for row in distinct_values(chain[chain >= 0]).tolist()}
    return np.array([any(stays.get(row, False) for row in rows) for rows in chain.tolist()], np.bool_)
