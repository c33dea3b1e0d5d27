"""Findings about the memory in an allocator snapshot."""

import numpy as np

from tb_bottleneck.base.text import NS_PER_US
from tb_bottleneck.memory.categories import Category
from tb_bottleneck.memory.finding import CRITICAL, MemoryFinding, Value
from tb_bottleneck.memory.findings import by_severity, dominates, dominating_tensor, fragmentation
from tb_bottleneck.memory.growth import finding_of
from tb_bottleneck.memory.snapshot.snapshot_memory import SnapshotMemory
from tb_bottleneck.sources.snapshot.snapshot_columns import ACTIONS

_TENSORS = (Category.ACTIVATIONS, Category.TEMPORARIES, Category.INPUTS)


def findings_of_snapshot(memory: SnapshotMemory) -> list[MemoryFinding]:
    """Returns the findings, the most severe first."""
    account, growth = memory.account, memory.growth
    tensors = [site for site in memory.sites() if site.category in _TENSORS]
    largest = max(tensors, key=lambda site: site.largest, default=None)
    return by_severity(
        (
            out_of_memory(memory),
            finding_of(growth, memory.growing_sites(), account.headroom) if growth.steady(account.peak) else None,
            fragmentation(account),
            dominates(account, Category.OPTIMIZER, "optimizer_dominates"),
            dominates(account, Category.ACTIVATIONS, "activations_dominate"),
            None if largest is None else dominating_tensor(account, largest),
        )
    )


def out_of_memory(memory: SnapshotMemory) -> MemoryFinding | None:
    """A request failed: the last one that was recorded. The entry has its size and the free memory of the device."""
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
