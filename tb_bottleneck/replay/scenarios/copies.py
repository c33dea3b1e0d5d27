"""Copies to the device start from pinned memory, and nobody waits for them.

Changes: calls that copy to the device return at once, and so do waits right behind them; copies from pageable memory
take as long as pinned ones. Copies to the host stay as they are.
Assumes: the loader pins its batches in time, and memory for it is there.
Bounds: pinned copies run at the median rate of the recording's own, else at what the link is known to reach; at worst
at SLOWER_LINK of that. At best they also run on a stream of their own, beside the kernels of the step before.
"""

import numpy as np

from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.modified_graph import Case, World
from tb_bottleneck.replay.pcie_link import link_rate, named_copies
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.replay.scenarios.syncs import waiting
from tb_bottleneck.trace.device_ops import Work

SLOWER_LINK = 0.7
# A copy smaller than this takes its latency, not its bytes' time.
MIN_BYTES = 1_000_000


def cure(world: World, case: Case) -> World:
    """Frees the host from the copies, and makes pageable ones as fast as pinned ones."""
    free = freed(world)
    items, ops = free.items, world.facts.ops
    if case is Case.HIGH:
        return free.but(length=np.where(free.works(Work.UPLOAD), 0, items.length))
    rate = pinned_rate(world)
    if rate is None:
        return free
    rate *= SLOWER_LINK if case is Case.LOW else 1.0
    size = ops.bytes[items.op]
    # ROCm does not tell pinned from pageable: there a copy is taken for pageable if it is slower than a pinned one.
    pageable = free.works(Work.UPLOAD) & named_copies(world, "Pageable", "Host ->") & (size >= MIN_BYTES)
    pinned = np.rint(size / rate).astype(np.int64)
    return free.but(length=np.where(pageable, np.minimum(items.length, pinned), items.length))


def freed(world: World) -> World:
    """The world in which no call waits for a copy to the device, its own or the one right before it."""
    items = world.items
    copies = world.works(Work.UPLOAD)
    behind = (items.op < 0) & (items.follows >= 0) & copies[items.follows]
    free = waiting(world) & (copies | behind)
    # A call that stages its copy waits for the stream, then fills a buffer; without staging that pause is gone.
    pause = np.where(free & copies, np.minimum(items.pause, _usual_pause(world)), items.pause)
    return world.but(waits=np.where(free, NONE, items.waits), drains=items.drains & ~free, pause=pause)


def pinned_rate(world: World) -> float | None:
    """What pinned copies reach, in bytes per ns; None where neither recording nor device tells."""
    recorded, ops = world.facts.graph.items, world.facts.ops
    pinned = np.flatnonzero(world.works(Work.UPLOAD) & named_copies(world, "Pinned"))
    pinned = pinned[ops.bytes[recorded.op[pinned]] >= MIN_BYTES]
    if len(pinned):
        return float(np.median(ops.bytes[recorded.op[pinned]] / np.maximum(recorded.length[pinned], 1)))
    return link_rate(world)


def _usual_pause(world: World) -> int:
    pauses = world.items.pause[world.items.stream >= 0]
    return int(np.median(pauses)) if len(pauses) else 0


SCENARIO = Scenario("copies", cure)
