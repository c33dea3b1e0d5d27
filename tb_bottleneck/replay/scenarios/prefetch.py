"""The next batch is copied on a stream of its own while this one trains.

Changes: copies to the device take no time on the stream that computes, and nobody waits for them.
Assumes: memory for a second batch is there.
Bounds: the window is never shorter than all of its copies take one after the other, since they share the link. At worst
copies only return at once, and still run between the kernels.
"""

import numpy as np

from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios.copies import freed
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.device_ops import Work


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Takes the copies off the computing stream."""
    unwaited = freed(graph)
    if estimate is Estimate.LOW:
        return unwaited
    items, uploads = unwaited.items, unwaited.with_work(Work.UPLOAD)
    on_link = int(items.length[uploads & graph.base.recording.in_window(items.at)].sum())
    return unwaited.with_items(length=np.where(uploads, 0, items.length)).with_floor(on_link)


SCENARIO = Scenario("prefetch", apply)
