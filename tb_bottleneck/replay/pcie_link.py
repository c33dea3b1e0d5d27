"""What copies over the link between host and device reach, and which copies they are."""

import numpy as np

from tb_bottleneck.knowledge.gpus import gpu_named
from tb_bottleneck.knowledge.pcie import PINNED_LANES, pinned_rates
from tb_bottleneck.replay.modified_graph import World
from tb_bottleneck.trace.name_filter import named
from tb_bottleneck.trace.table import Bools


def link_rate(world: World) -> float | None:
    """What pinned copies reach on a healthy link of this device, in bytes per ns; None where it is not known."""
    trace = world.facts.recording.trace
    facts = trace.header.device(trace.device_index)
    gpu = gpu_named(facts.name) if facts is not None else None
    if gpu is None or gpu.pcie_generation is None or gpu.pcie_generation not in pinned_rates():
        return None
    return pinned_rates()[gpu.pcie_generation] * (gpu.pcie_lanes or PINNED_LANES) / PINNED_LANES


def named_copies(world: World, *words: str) -> Bools:
    """Items whose operation is a copy with one of these words in its name."""
    trace, ops = world.facts.recording.trace, world.facts.ops
    if not len(ops):
        return world.items.op >= 0
    found = named(trace.names, ops.name, lambda name: name.startswith("Memcpy") and any(word in name for word in words))
    return np.asarray((world.items.op >= 0) & found[world.items.op], np.bool_)
