"""Copies the next batch on a separate stream while the current one trains.

Changes: copies to the device take no time on the compute stream, and nothing waits for them.
Assumes: there is memory for a second batch.
Bounds: the window is never shorter than all copies one after the other, because they share the link. Low: copies only
return at once, and still run between the kernels.
"""

import numpy as np

from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.replay.scenarios.copies import without_upload_waits
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.trace.device_ops import Work


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Removes the copies from the compute stream."""
    unwaited = without_upload_waits(graph)
    if estimate is Estimate.LOW:
        return unwaited
    items, uploads = unwaited.items, unwaited.with_work(Work.UPLOAD)
    on_link = int(items.length[uploads & graph.base.recording.in_window(items.at)].sum())
    return unwaited.with_items(length=np.where(uploads, 0, items.length)).with_floor(on_link)


SCENARIO = Scenario("prefetch", apply)
