"""Runs the link between host and device at its full speed.

Changes: copies of pinned memory take the time of their bytes at the rate of a healthy link.
Assumes: the link is degraded, and not shared with other work.
Bounds: low: half of the improvement. High: as expected.
"""

import numpy as np

from tb_bottleneck.replay.link_copies import healthy_link_rate
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios.copies import MIN_BYTES
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.device_ops import Work


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Shortens the copies. Returns None if the rate of a healthy link is not known."""
    rate = healthy_link_rate(graph)
    if rate is None:
        return None
    items, size = graph.items, graph.base.ops.bytes[graph.items.op]
    large = graph.with_work(Work.UPLOAD, Work.DOWNLOAD) & (size >= MIN_BYTES)
    healthy = np.minimum(items.length, np.rint(size / rate).astype(np.int64))
    reached = (healthy + items.length) // 2 if estimate is Estimate.LOW else healthy
    return graph.with_items(length=np.where(large, reached, items.length))


SCENARIO = Scenario("link", apply)
