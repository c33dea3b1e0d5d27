"""Copies over the link between host and device: their items, and the rate of a healthy link."""

import numpy as np

from tb_bottleneck.knowledge.gpus import PINNED_LANES, gpu_named, pinned_rates
from tb_bottleneck.replay.modified_graph import ModifiedGraph
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.table import Bools


def healthy_link_rate(graph: ModifiedGraph) -> float | None:
    """Returns the rate of pinned copies on a healthy link of this device, in bytes per ns; None if it is not known."""
    trace = graph.base.recording.trace
    facts = trace.header.device(trace.device_index)
    gpu = gpu_named(facts.name) if facts is not None else None
    if gpu is None or gpu.pcie_generation is None or gpu.pcie_generation not in pinned_rates():
        return None
    return pinned_rates()[gpu.pcie_generation] * (gpu.pcie_lanes or PINNED_LANES) / PINNED_LANES


def named_copies(graph: ModifiedGraph, *words: str) -> Bools:
    """Returns the items with a copy that has one of these words in its name."""
    trace, ops = graph.base.recording.trace, graph.base.ops
    if not len(ops):
        return graph.items.op >= 0
    matches = name_matches(
        trace.names, ops.name, lambda name: name.startswith("Memcpy") and any(word in name for word in words)
    )
    return np.asarray((graph.items.op >= 0) & matches[graph.items.op], np.bool_)
