"""Findings about the memory in an allocator snapshot, and the peaks that their fixes lead to."""

from collections.abc import Iterator

import numpy as np

from tb_bottleneck.base.text import NS_PER_US
from tb_bottleneck.memory.block_roles import Role
from tb_bottleneck.memory.categories import INDEX, Category
from tb_bottleneck.memory.finding import CRITICAL, INFO, MemoryFinding, Value
from tb_bottleneck.memory.findings import by_severity, dominates, dominating_tensor, fragmentation, state_dominates
from tb_bottleneck.memory.forecast.forecasts import MARGIN, Forecast
from tb_bottleneck.memory.growth import finding_of, place_text
from tb_bottleneck.memory.snapshot.snapshot_memory import SnapshotMemory
from tb_bottleneck.sources.snapshot.snapshot_columns import ACTIONS
from tb_bottleneck.trace.table import Bools, Floats

CONSIDERABLE = 0.1
"""Minimum share of the peak that is worth a finding or a forecast. A choice."""
EIGHT_BITS = 0.254
"""Ratio of the bytes of an 8-bit state to those of a 32-bit state. Each 256 values share a 32-bit scale (arXiv
2110.02861)."""

_TENSORS = (Category.ACTIVATIONS, Category.TEMPORARIES, Category.INPUTS)


def findings_of_snapshot(memory: SnapshotMemory) -> list[MemoryFinding]:
    """Returns the findings, the most severe first."""
    account, growth = memory.account, memory.growth
    return by_severity(
        (
            out_of_memory(memory),
            finding_of(growth, memory.growing_sites(), account.headroom) if growth.steady(account.peak) else None,
            fragmentation(account),
            state_dominates(account),
            dominates(account, Category.ACTIVATIONS, "activations_dominate"),
            _considerable(memory, "attention_kept", memory.attention),
            _considerable(memory, "optimizer_temporaries", memory.optimizer_temporaries),
            _kept_gradients(memory),
            _largest_tensor(memory),
        )
    )


def forecasts_of_snapshot(memory: SnapshotMemory) -> Iterator[Forecast]:
    """Yields forecasts of the peak for changes to parts with at least CONSIDERABLE of the peak; none without calls."""
    if memory.peak_row is None:
        return
    account = memory.account
    states = memory.category == INDEX[Category.OPTIMIZER]
    older = account.bytes_of[Category.OPTIMIZER] - _alive(memory, states)
    if account.share(Category.OPTIMIZER) >= CONSIDERABLE:
        saved = 1 - EIGHT_BITS
        yield _forecast(memory, "states_in_8_bits", _peak(memory, np.where(states, saved, 0.0), older * saved))
    yield from _other_batches(memory)
    fused = (("fused_attention", memory.attention), ("fused_optimizer", memory.optimizer_temporaries))
    for change, blocks in fused:
        if _alive(memory, blocks) >= CONSIDERABLE * account.peak:
            yield _forecast(memory, change, _peak(memory, np.where(blocks, 1.0, 0.0)))


def _other_batches(memory: SnapshotMemory) -> Iterator[Forecast]:
    """Yields the peaks with twice and half the batch. Of temporary blocks it is not certain which are in proportion."""
    certain = np.isin(memory.category, [INDEX[Category.ACTIVATIONS], INDEX[Category.INPUTS]])
    if _alive(memory, certain) < CONSIDERABLE * memory.account.peak:
        return
    temporary = (memory.category == INDEX[Category.TEMPORARIES]) & ~memory.optimizer_temporaries
    likely = certain | (temporary & ~np.isin(memory.blocks.size, list(memory.weights.parameters)))
    for change, factor in (("double_batch", 2.0), ("half_batch", 0.5)):
        peaks = [_peak(memory, np.where(grows, 1 - factor, 0.0)) for grows in (likely, certain, certain | temporary)]
        yield _forecast(memory, change, *peaks)


def _forecast(memory: SnapshotMemory, change: str, peak: float, *others: float) -> Forecast:
    """Returns the forecast of a peak; with `others` if it is not certain."""
    low, high = min(peak, *others, peak) * (1 - MARGIN), max(peak, *others, peak) * (1 + MARGIN)
    return Forecast(change, {}, peak, low, high if peak > memory.account.peak else min(high, memory.account.peak))


def _peak(memory: SnapshotMemory, saved: Floats, older: float = 0.0) -> float:
    """Returns the peak if each recorded block saves this share of its bytes, and older blocks save this many bytes.

    Reserved memory stays in proportion to the tensors.
    """
    blocks, events, account = memory.blocks, memory.events, memory.account
    difference = np.zeros(len(events) + 1)
    np.add.at(difference, np.maximum(blocks.opened, 0), blocks.size * saved)
    np.subtract.at(difference, blocks.closed, blocks.size * saved)
    in_use = events.allocated - np.cumsum(difference)[: len(events)] - older
    return float(in_use.max()) * account.reserved / max(account.allocated, 1)


def _alive(memory: SnapshotMemory, chosen: Bools) -> int:
    """Returns the bytes of the recorded blocks in `chosen` that exist at the peak."""
    row = memory.peak_row
    return 0 if row is None else int(memory.blocks.size[chosen & memory.blocks.alive(row)].sum())


def _considerable(memory: SnapshotMemory, cause: str, chosen: Bools) -> MemoryFinding | None:
    """Returns a finding if the blocks in `chosen` are at least CONSIDERABLE of the peak, otherwise None."""
    size = _alive(memory, chosen)
    share = size / max(memory.account.peak, 1)
    if share < CONSIDERABLE:
        return None
    sites = memory.sites_of(chosen)
    at = [Value("at", place_text(site.place), "text") for site in sites[:1] if place_text(site.place)]
    return MemoryFinding(cause, INFO, size, (Value("part", size), Value("part_share", share, "share"), *at))


def _kept_gradients(memory: SnapshotMemory) -> MemoryFinding | None:
    """Gradients are older than the history, and add to a peak outside of the optimizer, which reads them."""
    row, size = memory.peak_row, memory.weights.bytes
    if row is None or not memory.weights.gradients_kept or size < CONSIDERABLE * memory.account.peak:
        return None
    latest = np.flatnonzero(memory.blocks.opened == row)
    if len(latest) and memory.calls.opened[latest[0]] == Role.OPTIMIZER:
        return None
    share = Value("part_share", size / memory.account.peak, "share")
    return MemoryFinding("gradients_kept", INFO, size, (Value("part", size), share))


def _largest_tensor(memory: SnapshotMemory) -> MemoryFinding | None:
    """One tensor is a large part of the peak; those of the optimizer and of attention have findings of their own."""
    others = ~memory.attention & ~memory.optimizer_temporaries
    tensors = [site for site in memory.sites_of(others) if site.category in _TENSORS]
    largest = max(tensors, key=lambda site: site.largest, default=None)
    return None if largest is None else dominating_tensor(memory.account, largest)


def out_of_memory(memory: SnapshotMemory) -> MemoryFinding | None:
    """Returns the finding about the last failed request that was recorded; None if no request failed.

    The entry of a failed request has the size of the request and the free bytes of the device."""
    entries, events = memory.snapshot.entries, memory.events
    failed = (entries["action"] == ACTIONS.index("oom")) & (entries["device"] == memory.device)
    if not failed.any():
        return None
    row = np.flatnonzero(failed)[-1]
    asked, device_free = int(entries["size"][row]), int(entries["address"][row])
    before = int(np.searchsorted(events.time, entries["time_us"][row] * NS_PER_US, side="right")) - 1
    held = int(events.reserved[before] - events.allocated[before]) if before >= 0 else 0
    cause = "out_of_memory_fragmented" if device_free + held > asked else "out_of_memory"
    evidence = (Value("asked", asked), Value("device_free", device_free), Value("held_free", max(held, 0)))
    return MemoryFinding(cause, CRITICAL, 0, evidence)
