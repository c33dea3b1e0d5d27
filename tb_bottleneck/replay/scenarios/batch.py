"""Twice as many samples per step: kernels that leave most of the device idle take no longer for them.

Changes: kernels that fill the device, copies and loading take twice as long; kernels too small to fill it, the
optimizer and collectives stay, and so does the host. What is predicted is the time for the recorded samples.
Assumes: memory suffices, and the training does as well with the larger batch.
Bounds: at worst small kernels take half as long again; at best as expected.
"""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenarios.scenario import Scenario
from tb_bottleneck.roofline.underfilled import underfilled
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work

TIMES = 2
GROWING = {Estimate.EXPECTED: 1.0, Estimate.LOW: 1.5, Estimate.HIGH: 1.0}


def apply(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
    """Doubles the work of each step."""
    items, ops = graph.items, graph.base.ops
    small = underfilled(ops, graph.base.recording.trace.multiprocessors)[items.op]
    optimizer = graph.issued_in(graph.base.spans_named("Optimizer.step#"))
    grows = np.where(graph.with_work(*COMPUTE_KERNELS), np.where(small, GROWING[estimate], TIMES), 1.0)
    grows = np.where(
        graph.with_work(Work.UPLOAD, Work.DOWNLOAD, Work.DEVICE_COPY), TIMES, np.where(optimizer, 1.0, grows)
    )
    gap = graph.gap_scaled(Activity.LOAD_BATCH, TIMES)
    return graph.with_items(length=scale_column(items.length, grows), gap=gap).with_batch(TIMES)


SCENARIO = Scenario("batch", apply)
