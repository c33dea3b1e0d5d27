"""Copies to the device from pinned memory, without waiting.

Changes: calls that copy to the device return at once, and so do waits directly after them. Copies from pageable memory
take as long as pinned ones. Copies to the host stay the same.
Assumes: the loader pins its batches in time, and there is enough memory for it.
Bounds: pinned copies run at the median rate in the recording, otherwise at the known rate of the link; low: at
SLOWER_LINK of that. High: they also run on a separate stream, in parallel with the kernels of the previous step.
"""

import numpy as np

from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.link_copies import healthy_link_rate, named_copies
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.replay.scenarios.syncs import waiting
from tb_bottleneck.trace.device_ops import Work

SLOWER_LINK = 0.7
# The time of a smaller copy is mostly latency.
MIN_BYTES = 1_000_000


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Makes copies asynchronous, and makes pageable copies as fast as pinned ones."""
    unblocked = without_upload_waits(graph)
    items, ops = unblocked.items, graph.base.ops
    if estimate is Estimate.HIGH:
        return unblocked.with_items(length=np.where(unblocked.with_work(Work.UPLOAD), 0, items.length))
    rate = pinned_rate(graph)
    if rate is None:
        return unblocked
    rate *= SLOWER_LINK if estimate is Estimate.LOW else 1.0
    size = ops.bytes[items.op]
    # ROCm does not distinguish pinned from pageable memory: a copy counts as pageable if it is slower than a pinned
    # one.
    pageable = unblocked.with_work(Work.UPLOAD) & named_copies(graph, "Pageable", "Host ->") & (size >= MIN_BYTES)
    pinned = np.rint(size / rate).astype(np.int64)
    return unblocked.with_items(length=np.where(pageable, np.minimum(items.length, pinned), items.length))


def without_upload_waits(graph: ModifiedGraph) -> ModifiedGraph:
    """Returns the graph in which no call waits for a copy to the device, its own or the one directly before it."""
    items = graph.items
    copies = graph.with_work(Work.UPLOAD)
    behind = (items.op < 0) & (items.follows >= 0) & copies[items.follows]
    released = waiting(graph) & (copies | behind)
    # A call that stages its copy waits for the stream, then fills a buffer; without staging there is no such pause.
    pause = np.where(released & copies, np.minimum(items.pause, _usual_pause(graph)), items.pause)
    return graph.with_items(waits=np.where(released, NONE, items.waits), drains=items.drains & ~released, pause=pause)


def pinned_rate(graph: ModifiedGraph) -> float | None:
    """Returns the rate of pinned copies in bytes per ns, or None if neither the recording nor the device gives it."""
    recorded, ops = graph.base.graph.items, graph.base.ops
    pinned = np.flatnonzero(graph.with_work(Work.UPLOAD) & named_copies(graph, "Pinned"))
    pinned = pinned[ops.bytes[recorded.op[pinned]] >= MIN_BYTES]
    if len(pinned):
        return float(np.median(ops.bytes[recorded.op[pinned]] / np.maximum(recorded.length[pinned], 1)))
    return healthy_link_rate(graph)


def _usual_pause(graph: ModifiedGraph) -> int:
    pauses = graph.items.pause[graph.items.stream >= 0]
    return int(np.median(pauses)) if len(pauses) else 0


SCENARIO = Scenario("copies", apply)
