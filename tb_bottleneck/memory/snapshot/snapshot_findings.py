"""Findings about the memory in an allocator snapshot."""

import numpy as np

from tb_bottleneck.base.units import NS_PER_US
from tb_bottleneck.memory.block_roles import Role
from tb_bottleneck.memory.categories import Category
from tb_bottleneck.memory.finding import CRITICAL, INFO, MemoryFinding, Value
from tb_bottleneck.memory.findings import by_severity, dominates, dominating_tensor, fragmentation, state_dominates
from tb_bottleneck.memory.growth import growth_finding, place_text
from tb_bottleneck.memory.snapshot.snapshot_forecasts import CONSIDERABLE
from tb_bottleneck.memory.snapshot.snapshot_memory import SnapshotMemory
from tb_bottleneck.sources.snapshot.snapshot_columns import ACTIONS
from tb_bottleneck.trace.table import Bools

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
    sites = memory.sites(chosen & memory.at_peak)
    at = [Value("at", place_text(site.place), "text") for site in sites[:1] if place_text(site.place)]
    return MemoryFinding(cause, INFO, size, (Value("part", size), Value("part_share", share, "share"), *at))


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
    bytes of the device and the allocator's unused bytes together exceed the request, the cause is fragmentation."""
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
