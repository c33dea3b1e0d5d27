"""Scenarios of copies: pinned or prefetched copies, and a healthy link."""

import numpy as np

from tb_bottleneck.knowledge.gpus import PINNED_LANES, gpu_named, pinned_rates
from tb_bottleneck.replay.graph.host_rows import NONE
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenario import Scenario, waiting
from tb_bottleneck.trace.device_ops import Work
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.table import Bools

SLOWER_LINK = 0.7
# The time of a smaller copy is mostly latency.
MIN_BYTES = 1_000_000


def healthy_link_rate(graph: ModifiedGraph) -> float | None:
    """Returns the usual rate of copies from pinned memory over the PCIe link of the judged device, in bytes per ns.

    Returns None if the device or its link is not known.
    """
    trace = graph.base.recording.trace
    facts = trace.header.device(trace.device_index)
    gpu = gpu_named(facts.name) if facts is not None else None
    if gpu is None or gpu.pcie.generation is None or gpu.pcie.generation not in pinned_rates():
        return None
    return pinned_rates()[gpu.pcie.generation] * (gpu.pcie.lanes or PINNED_LANES) / PINNED_LANES


def named_copies(graph: ModifiedGraph, *words: str) -> Bools:
    """Returns a mask of the items whose device operation is a copy with one of `words` in its name, e.g. "Pinned"."""
    trace, ops = graph.base.recording.trace, graph.base.ops
    if not len(ops):
        return graph.items.op >= 0
    matches = name_matches(
        trace.names, ops.name, lambda name: name.startswith("Memcpy") and any(word in name for word in words)
    )
    return np.asarray((graph.items.op >= 0) & matches[graph.items.op], np.bool_)


def with_pinned_copies(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Copies batches to the device from pinned memory, without waiting for the copies.

    Changes: calls that copy to the device return at once, and so do waits directly after them. Copies from pageable
    memory take as long as copies from pinned memory. Copies to the host stay the same.
    Assumes: the loader pins its batches in time, and there is enough memory for pinned batches.
    Bounds: copies from pinned memory run at their median rate in the recording, or otherwise at the usual rate of the
    link; in the low estimate, at SLOWER_LINK times this rate. In the high estimate, copies to the device take no time,
    as if they ran in parallel with kernels.
    """
    unblocked = without_upload_waits(graph)
    items, ops = unblocked.items, graph.base.ops
    if estimate is Estimate.HIGH:
        return unblocked.with_items(length=np.where(unblocked.with_work(Work.UPLOAD), 0, items.length))
    rate = pinned_rate(graph)
    if rate is None:
        return unblocked
    rate *= SLOWER_LINK if estimate is Estimate.LOW else 1.0
    size = ops.bytes[items.op]
    # ROCm does not distinguish pinned from pageable memory: all copies to the device may be pageable. Only those that
    # are slower than a copy from pinned memory change.
    pageable = unblocked.with_work(Work.UPLOAD) & named_copies(graph, "Pageable", "Host ->") & (size >= MIN_BYTES)
    pinned = np.rint(size / rate).astype(np.int64)
    return unblocked.with_items(length=np.where(pageable, np.minimum(items.length, pinned), items.length))


def without_upload_waits(graph: ModifiedGraph) -> ModifiedGraph:
    """Returns the graph in which no call waits for its own copy to the device, or for the copy of the call directly
    before it."""
    items = graph.items
    copies = graph.with_work(Work.UPLOAD)
    behind = (items.op < 0) & (items.follows >= 0) & copies[items.follows]
    released = waiting(graph) & (copies | behind)
    # A call that stages its copy waits for the stream, then fills a buffer; without staging there is no such pause.
    pause = np.where(released & copies, np.minimum(items.pause, _usual_pause(graph)), items.pause)
    return graph.with_items(waits=np.where(released, NONE, items.waits), drains=items.drains & ~released, pause=pause)


def pinned_rate(graph: ModifiedGraph) -> float | None:
    """Returns the rate of copies from pinned memory to the device in bytes per ns: the median of the recorded copies of
    at least MIN_BYTES or, without such copies, the usual rate of the link. None if neither is known."""
    recorded, ops = graph.base.graph.items, graph.base.ops
    pinned = np.flatnonzero(graph.with_work(Work.UPLOAD) & named_copies(graph, "Pinned"))
    pinned = pinned[ops.bytes[recorded.op[pinned]] >= MIN_BYTES]
    if len(pinned):
        return float(np.median(ops.bytes[recorded.op[pinned]] / np.maximum(recorded.length[pinned], 1)))
    return healthy_link_rate(graph)


def _usual_pause(graph: ModifiedGraph) -> int:
    pauses = graph.items.pause[graph.items.stream >= 0]
    return int(np.median(pauses)) if len(pauses) else 0


PINNED_COPIES = Scenario("copies", with_pinned_copies)


def with_prefetched_copies(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Copies the next batch on a separate stream while the device trains on the current batch.

    Changes: copies to the device take no time on the compute stream, and nothing waits for them.
    Assumes: there is memory for a second batch.
    Bounds: the window takes at least as long as all copies one after the other, because they share the link. In the low
    estimate, the calls return at once, but the copies still run between the kernels.
    """
    unwaited = without_upload_waits(graph)
    if estimate is Estimate.LOW:
        return unwaited
    items, uploads = unwaited.items, unwaited.with_work(Work.UPLOAD)
    on_link = int(items.length[uploads & graph.base.recording.in_window(items.at)].sum())
    return unwaited.with_items(length=np.where(uploads, 0, items.length)).with_floor(on_link)


PREFETCHED_COPIES = Scenario("prefetch", with_prefetched_copies)


def on_healthy_link(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Runs copies between host and device at the usual speed of their PCIe link.

    Returns None if this speed is not known.

    Changes: a copy of at least MIN_BYTES takes at most its bytes / the usual rate of pinned copies on such a link.
    Assumes: the link is degraded, and not shared with other work.
    Bounds: in the low estimate, half of the improvement is assumed. The high estimate equals the expected one.
    """
    rate = healthy_link_rate(graph)
    if rate is None:
        return None
    items, size = graph.items, graph.base.ops.bytes[graph.items.op]
    large = graph.with_work(Work.UPLOAD, Work.DOWNLOAD) & (size >= MIN_BYTES)
    healthy = np.minimum(items.length, np.rint(size / rate).astype(np.int64))
    reached = (healthy + items.length) // 2 if estimate is Estimate.LOW else healthy
    return graph.with_items(length=np.where(large, reached, items.length))


HEALTHY_LINK = Scenario("link", on_healthy_link)

FIXES = {
    "pageable_copies": PINNED_COPIES,
    "exposed_copies": PINNED_COPIES,
    "blocking_copies": PREFETCHED_COPIES,
    "degraded_link": HEALTHY_LINK,
}
"""The scenario that simulates the fix of each cause."""
