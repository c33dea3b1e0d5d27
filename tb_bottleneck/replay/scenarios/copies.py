"""Copies to the device start from pinned memory, and nobody waits for them.

Changes: calls that copy to the device return at once, and so do waits right behind them; copies from pageable memory
take as long as pinned ones. Copies to the host stay as they are.
Assumes: the loader pins its batches in time, and memory for it is there.
Bounds: pinned copies run at the median rate of the recording's own, else at what the link is known to reach; at worst
at SLOWER_LINK of that. At best they also run on a stream of their own, beside the kernels of the step before.
"""

import numpy as np

from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.pcie_link import link_rate, named_copies
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.replay.scenarios.syncs import waiting
from tb_bottleneck.trace.device_ops import Work

SLOWER_LINK = 0.7
# A copy smaller than this takes its latency, not its bytes' time.
MIN_BYTES = 1_000_000


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Frees the host from the copies, and makes pageable ones as fast as pinned ones."""
    free = freed(graph)
    items, ops = free.items, graph.base.ops
    if estimate is Estimate.HIGH:
        return free.with_items(length=np.where(free.with_work(Work.UPLOAD), 0, items.length))
    rate = pinned_rate(graph)
    if rate is None:
        return free
    rate *= SLOWER_LINK if estimate is Estimate.LOW else 1.0
    size = ops.bytes[items.op]
    # ROCm does not tell pinned from pageable: there a copy is taken for pageable if it is slower than a pinned one.
    pageable = free.with_work(Work.UPLOAD) & named_copies(graph, "Pageable", "Host ->") & (size >= MIN_BYTES)
    pinned = np.rint(size / rate).astype(np.int64)
    return free.with_items(length=np.where(pageable, np.minimum(items.length, pinned), items.length))


def freed(graph: ModifiedGraph) -> ModifiedGraph:
    """The world in which no call waits for a copy to the device, its own or the one right before it."""
    items = graph.items
    copies = graph.with_work(Work.UPLOAD)
    behind = (items.op < 0) & (items.follows >= 0) & copies[items.follows]
    free = waiting(graph) & (copies | behind)
    # A call that stages its copy waits for the stream, then fills a buffer; without staging that pause is gone.
    pause = np.where(free & copies, np.minimum(items.pause, _usual_pause(graph)), items.pause)
    return graph.with_items(waits=np.where(free, NONE, items.waits), drains=items.drains & ~free, pause=pause)


def pinned_rate(graph: ModifiedGraph) -> float | None:
    """What pinned copies reach, in bytes per ns; None where neither recording nor device tells."""
    recorded, ops = graph.base.graph.items, graph.base.ops
    pinned = np.flatnonzero(graph.with_work(Work.UPLOAD) & named_copies(graph, "Pinned"))
    pinned = pinned[ops.bytes[recorded.op[pinned]] >= MIN_BYTES]
    if len(pinned):
        return float(np.median(ops.bytes[recorded.op[pinned]] / np.maximum(recorded.length[pinned], 1)))
    return link_rate(graph)


def _usual_pause(graph: ModifiedGraph) -> int:
    pauses = graph.items.pause[graph.items.stream >= 0]
    return int(np.median(pauses)) if len(pauses) else 0


SCENARIO = Scenario("copies", apply)
