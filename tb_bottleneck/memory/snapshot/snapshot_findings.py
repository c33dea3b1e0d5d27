"""Findings about the memory in an allocator snapshot.

Predicts from an allocator snapshot how changes of a training affect the peak of the memory.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from tb_bottleneck.base.units import NS_PER_US
from tb_bottleneck.memory.block_roles import Role
from tb_bottleneck.memory.blocks import ROUNDING
from tb_bottleneck.memory.categories import INDEX, Category
from tb_bottleneck.memory.finding import CRITICAL, INFO, MemoryFinding, Value
from tb_bottleneck.memory.findings import by_severity, dominates, dominating_tensor, fragmentation, state_dominates
from tb_bottleneck.memory.forecast.forecasts import CHECKPOINT_MARGIN, MARGIN, Forecast
from tb_bottleneck.memory.forecast.precision import HIGH, lives_of, peak_of, recomputed
from tb_bottleneck.memory.growth import growth_finding, place_text
from tb_bottleneck.memory.snapshot.module_calls import repeated_calls
from tb_bottleneck.memory.snapshot.snapshot_memory import SnapshotMemory
from tb_bottleneck.memory.snapshot.snapshot_places import frame_text
from tb_bottleneck.sources.snapshot.snapshot_columns import ACTIONS
from tb_bottleneck.trace.table import Bools, Floats

CONSIDERABLE = 0.1
"""Minimum share of the peak that is worth a finding or a forecast. A choice."""
EIGHT_BITS = 0.254
"""Ratio of the bytes of an 8-bit optimizer state to the bytes of a 32-bit state. Each 256 values share a 32-bit scale
(arXiv 2110.02861)."""


# Frames of operators whose results stay in 32 bits: C++ frames, or Python functions if no C++ frames were recorded.
_STAYS = re.compile(rf"at::_ops::{HIGH}(?:_[A-Za-z]\w*)?::(?:call|redispatch)|torch/nn/functional\.py:{HIGH}$")
_AUTOCAST = re.compile(r"autocast")
SAME_WEIGHTS = 0.9
"""Two places allocated the same weights if this fraction of their bytes is in blocks of the same sizes. A choice."""


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


_TENSORS = (Category.ACTIVATIONS, Category.TEMPORARIES, Category.INPUTS)


def findings_of_snapshot(memory: SnapshotMemory) -> list[MemoryFinding]:
    """Returns the findings about the memory of a snapshot, the most severe first."""
    account = memory.account
    return by_severity(
        (
            out_of_memory(memory),
            growth_finding(memory, np.unique(memory.calls.updates)),  # a step: from one update to the next
            fragmentation(account),
            state_dominates(account),
            dominates(account, Category.ACTIVATIONS, "activations_dominate"),
            _considerable(memory, "attention_kept", memory.attention),
            _considerable(memory, "optimizer_temporaries", memory.optimizer_temporaries),
            _considerable(memory, "weight_casts", memory.weight_casts),
            _copied_weights(memory),
            _kept_gradients(memory),
            _largest_tensor(memory),
        )
    )


def _considerable(memory: SnapshotMemory, cause: str, chosen: Bools) -> MemoryFinding | None:
    """Returns a finding with the key `cause` if the blocks in the mask `chosen` have at least the fraction CONSIDERABLE
    of the bytes at the peak, otherwise None."""
    size = memory.bytes_at_peak(chosen)
    share = size / max(memory.account.peak, 1)
    if share < CONSIDERABLE:
        return None
    # Blocks of autograd's thread have no line of the program.
    sites = sorted(memory.sites(chosen & memory.at_peak), key=lambda site: not site.place.file)
    at = [Value("at", place_text(site.place), "text") for site in sites[:1] if place_text(site.place)]
    return MemoryFinding(cause, INFO, size, (Value("part", size), Value("part_share", share, "share"), *at))


def _copied_weights(memory: SnapshotMemory) -> MemoryFinding | None:
    """Returns the finding if two places in the program allocated the same weights, in one type or in two types of 16
    and 32 bits, with at least the fraction CONSIDERABLE of the bytes at the peak each. Otherwise None."""
    found = []
    for (one, sizes), (other, copies) in combinations(memory.places_of_weights(), 2):
        for factor in (0.5, 1.0, 2.0):
            scaled = Counter({-(-int(size * factor) // ROUNDING) * ROUNDING: count for size, count in sizes.items()})
            if _bytes(scaled & copies) >= SAME_WEIGHTS * max(_bytes(scaled), _bytes(copies)):
                found.append((min(_bytes(sizes), _bytes(copies)), one, other))
    size, *places = max(found, key=lambda pair: pair[0], default=(0,))
    share = size / max(memory.account.peak, 1)
    if share < CONSIDERABLE:
        return None
    names = [Value(name, place_text(place), "text") for name, place in zip(("at", "copied"), places, strict=True)]
    return MemoryFinding(
        "copied_weights", INFO, size, (Value("part", size), Value("part_share", share, "share"), *names)
    )


def _bytes(counts: Counter[int]) -> int:
    return sum(size * count for size, count in counts.items())


def _kept_gradients(memory: SnapshotMemory) -> MemoryFinding | None:
    """Returns the finding if gradients from before the history have at least the fraction CONSIDERABLE of the bytes at
    the peak. Otherwise None; also None if the peak is in the optimizer's step, which needs the gradients."""
    row, size = memory.peak_row, memory.weights.bytes
    if row is None or not memory.weights.gradients_kept or size < CONSIDERABLE * memory.account.peak:
        return None
    latest = np.flatnonzero(memory.blocks.opened == row)
    if len(latest) and memory.calls.opened[latest[0]] == Role.OPTIMIZER:
        return None
    share = Value("part_share", size / memory.account.peak, "share")
    return MemoryFinding("gradients_kept", INFO, size, (Value("part", size), share))


def _largest_tensor(memory: SnapshotMemory) -> MemoryFinding | None:
    """Returns the finding if one block of activations, temporaries or inputs has a large fraction of the bytes at the
    peak, otherwise None. Temporaries of the optimizer and matrices of attention are left out, because they have
    findings of their own."""
    others = ~memory.attention & ~memory.optimizer_temporaries
    tensors = [site for site in memory.sites(others & memory.at_peak) if site.category in _TENSORS]
    largest = max(tensors, key=lambda site: site.largest, default=None)
    return None if largest is None else dominating_tensor(memory.account, largest)


def out_of_memory(memory: SnapshotMemory) -> MemoryFinding | None:
    """Returns the finding about the last request for memory that failed; None if no recorded request failed.

    The snapshot's entry of a failed request has the size of the request and the free bytes of the device. If the free
    bytes of the device and the allocator's unused bytes together exceed the request, the cause is fragmentation. If the
    request is for a weight of a module, the weights do not fit."""
    entries, events = memory.snapshot.entries, memory.events
    failed = (entries["action"] == ACTIONS.index("oom")) & (entries["device"] == memory.device)
    if not failed.any():
        return None
    row = np.flatnonzero(failed)[-1]
    asked, device_free = int(entries["size"][row]), int(entries["address"][row])
    before = int(np.searchsorted(events.time, entries["time_us"][row] * NS_PER_US, side="right")) - 1
    held = int(events.reserved[before] - events.allocated[before]) if before >= 0 else 0
    cause = "out_of_memory_fragmented" if device_free + held > asked else "out_of_memory"
    if memory.roles[entries["stack"][row]] == Role.CONSTRUCTION:
        cause = "weights_do_not_fit"
    evidence = (Value("asked", asked), Value("device_free", device_free), Value("held_free", max(held, 0)))
    return MemoryFinding(cause, CRITICAL, 0, evidence)
