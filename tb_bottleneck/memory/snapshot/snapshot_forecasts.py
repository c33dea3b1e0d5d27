"""Predicts from an allocator snapshot how changes of a training affect the peak of the memory."""

import re
from collections.abc import Iterator

import numpy as np

from tb_bottleneck.memory.block_roles import Role
from tb_bottleneck.memory.categories import INDEX, Category
from tb_bottleneck.memory.forecast.forecasts import CHECKPOINT_MARGIN, MARGIN, Forecast
from tb_bottleneck.memory.forecast.lifetimes import lives_of, peak_of, recomputed
from tb_bottleneck.memory.forecast.precision import HIGH
from tb_bottleneck.memory.snapshot.module_calls import repeated_calls
from tb_bottleneck.memory.snapshot.snapshot_memory import SnapshotMemory
from tb_bottleneck.memory.snapshot.snapshot_places import frame_text
from tb_bottleneck.trace.table import Floats

CONSIDERABLE = 0.1
"""Minimum share of the peak that is worth a finding or a forecast. A choice."""
EIGHT_BITS = 0.254
"""Ratio of the bytes of an 8-bit optimizer state to the bytes of a 32-bit state. Each 256 values share a 32-bit scale
(arXiv 2110.02861)."""


# Frames of operators whose results stay in 32 bits: C++ frames, or Python functions if no C++ frames were recorded.
_STAYS = re.compile(rf"at::_ops::{HIGH}(?:_[A-Za-z]\w*)?::(?:call|redispatch)|torch/nn/functional\.py:{HIGH}$")
_AUTOCAST = re.compile(r"autocast")


def forecasts_of_snapshot(memory: SnapshotMemory) -> Iterator[Forecast]:
    """Yields forecasts of the peak for changes that concern at least the fraction CONSIDERABLE of the bytes at the
    peak. Yields nothing if the snapshot has no recorded allocator calls."""
    if memory.peak_row is None:
        return
    account = memory.account
    states = memory.category == INDEX[Category.OPTIMIZER]
    older = account.bytes_of[Category.OPTIMIZER] - memory.bytes_at_peak(states)
    if account.share(Category.OPTIMIZER) >= CONSIDERABLE:
        saved = 1 - EIGHT_BITS
        yield _forecast(memory, "states_in_8_bits", _peak(memory, np.where(states, saved, 0.0), older * saved))
    yield from _other_batches(memory)
    if (memory.calls.opened == Role.BACKWARD).any():
        yield from _checkpointing(memory)
        yield from _mixed_precision(memory)
    fused = (("fused_attention", memory.attention), ("fused_optimizer", memory.optimizer_temporaries))
    for change, blocks in fused:
        if memory.bytes_at_peak(blocks) >= CONSIDERABLE * account.peak:
            yield _forecast(memory, change, _peak(memory, np.where(blocks, 1.0, 0.0)))


def _other_batches(memory: SnapshotMemory) -> Iterator[Forecast]:
    """Yields the forecasts for twice and half the batch size. They are ranges, because it is uncertain which temporary
    blocks are proportional to the batch size."""
    certain = np.isin(memory.category, [INDEX[Category.ACTIVATIONS], INDEX[Category.INPUTS]])
    if memory.bytes_at_peak(certain) < CONSIDERABLE * memory.account.peak:
        return
    temporary = (memory.category == INDEX[Category.TEMPORARIES]) & ~memory.optimizer_temporaries
    likely = certain | (temporary & ~np.isin(memory.blocks.size, list(memory.weights.parameters)))
    for change, factor in (("double_batch", 2.0), ("half_batch", 0.5)):
        peaks = [_peak(memory, np.where(grows, 1 - factor, 0.0)) for grows in (likely, certain, certain | temporary)]
        yield _forecast(memory, change, *peaks)


def _checkpointing(memory: SnapshotMemory) -> Iterator[Forecast]:
    """Yields the forecast of the peak if one class of repeated modules is checkpointed: the class that lowers the peak
    most. Yields nothing if checkpointing saves less than the fraction CONSIDERABLE of the bytes at the peak."""
    blocks, older = memory.blocks, memory.earlier
    now = peak_of(memory, lives_of(blocks, blocks.size), older)
    peaks = [(peak_of(memory, recomputed(blocks, it.calls), older), it.caller) for it in repeated_calls(memory)]
    least, caller = min(peaks, key=lambda it: it[0], default=(now, ""))  # of equal peaks, that of the innermost class
    if now - least < CONSIDERABLE * now:
        return
    peak, widest = least * memory.account.overhead, 1 + CHECKPOINT_MARGIN
    yield _forecast(
        memory, "checkpointing", peak, peak / widest, peak * widest, module=f"the modules that {caller} calls"
    )


def _mixed_precision(memory: SnapshotMemory) -> Iterator[Forecast]:
    """Yields the forecast of the peak with autocast. Yields nothing if the run already uses autocast, if its weights
    seem to have 16 bits, or if too few bytes would change.

    A snapshot does not record the types of tensors, so tensors may have 16 bits although nothing shows this."""
    texts = [frame_text(frame) for frame in memory.snapshot.frames]
    if memory.has_16_bits or any(_AUTOCAST.search(text) for text in texts):
        return
    kinds = [INDEX[kind] for kind in (Category.ACTIVATIONS, Category.TEMPORARIES)]
    passes = np.isin(memory.calls.opened, (Role.FORWARD, Role.BACKWARD, Role.OTHER))
    floating = np.isin(memory.category, kinds) & passes
    if memory.bytes_at_peak(floating) < CONSIDERABLE * memory.account.peak:
        return
    high = np.array([bool(_STAYS.search(text)) for text in texts], np.bool_)
    stays = np.array([high[list(stack)].any() for stack in memory.snapshot.stacks], np.bool_)[memory.stack]
    casts = memory.weights.bytes / 2
    likely = _peak(memory, np.where(floating & ~stays, 0.5, 0.0), -casts)
    all_halved, none_halved = _peak(memory, np.where(floating, 0.5, 0.0)), memory.account.peak + casts
    yield _forecast(memory, "precision_of_32_bits", likely, all_halved, none_halved)


def _forecast(memory: SnapshotMemory, change: str, peak: float, *others: float, **values: str) -> Forecast:
    """Returns the forecast of `peak` (bytes) with the key `change`. `others` are other possible peaks in bytes if
    `peak` is not certain. `values` fill the placeholders of the forecast's title.

    If `peak` is not above the recorded peak, the interval does not exceed the recorded peak either."""
    low, high = min((peak, *others)) * (1 - MARGIN), max((peak, *others)) * (1 + MARGIN)
    return Forecast(change, values, peak, low, high if peak > memory.account.peak else min(high, memory.account.peak))


def _peak(memory: SnapshotMemory, saved: Floats, older: float = 0.0) -> float:
    """Returns the peak in bytes if each recorded block i becomes smaller by the fraction `saved[i]` of its size, and
    blocks from before the recording become smaller by `older` bytes in total.

    Negative values make blocks larger. Reserved memory stays in proportion to the tensors."""
    lives = lives_of(memory.blocks, memory.blocks.size * (1 - saved))
    return peak_of(memory, lives, memory.earlier - older) * memory.account.overhead
