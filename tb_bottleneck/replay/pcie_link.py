"""What copies over the link between host and device reach, and which copies they are."""

import numpy as np

from tb_bottleneck.knowledge.gpus import gpu_named
from tb_bottleneck.replay.modified_graph import ModifiedGraph
from tb_bottleneck.replay.scenario_texts import pinned_rates
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.table import Bools

FULL_LANES = 16


def link_rate(graph: ModifiedGraph) -> float | None:
    """What pinned copies reach on a healthy link of this device, in bytes per ns; None where it is not known."""
    trace = graph.base.recording.trace
    facts = trace.header.device(trace.device_index)
    gpu = gpu_named(facts.name) if facts is not None else None
    if gpu is None or gpu.pcie_generation is None or gpu.pcie_generation not in pinned_rates():
        return None
    return pinned_rates()[gpu.pcie_generation] * (gpu.pcie_lanes or FULL_LANES) / FULL_LANES


def named_copies(graph: ModifiedGraph, *words: str) -> Bools:
    """Items whose operation is a copy with one of these words in its name."""
    trace, ops = graph.base.recording.trace, graph.base.ops
    if not len(ops):
        return graph.items.op >= 0
    found = name_matches(
        trace.names, ops.name, lambda name: name.startswith("Memcpy") and any(word in name for word in words)
    )
    return np.asarray((graph.items.op >= 0) & found[graph.items.op], np.bool_)
