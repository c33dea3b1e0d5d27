"""The scenario of a larger batch."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.launch.fixes import without_repeats
from tb_bottleneck.bottlenecks.launch.micro_batches import micro_batches
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenario import Scenario, scaled_on_cpu
from tb_bottleneck.roofline.kernel_bounds import underfilled
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work

BATCH_FACTOR = 2
PORTIONS_LEFT = {Estimate.EXPECTED: 0.0, Estimate.LOW: 0.1, Estimate.HIGH: 0.0}
LARGE_KERNELS = {Estimate.EXPECTED: 1.0, Estimate.LOW: 1.0, Estimate.HIGH: 0.5}
"""The part of the host time of all micro-batches but the first that remains in one pass, and the time of kernels that
fill the device, relative to their time in micro-batches: larger kernels use the device better. The bounds are
chosen."""
OF_WORK_ON_CPU = {Estimate.EXPECTED: 0.5, Estimate.LOW: 1.0, Estimate.HIGH: 0.0}
"""The part of the operators' own work that remains if operators compute all samples at once. Two trainings gained 1.8
and 16.9 times; the bounds are those of what is possible."""
SMALL_KERNEL_GROWTH = {Estimate.EXPECTED: 1.0, Estimate.LOW: 1.5, Estimate.HIGH: 1.0}


def with_larger_batch(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Doubles the samples per step: kernels that are too small to fill the device take no longer. If a step computes
    its batch in micro-batches, computes the batch in one pass instead (launch/fixes.py: without_repeats).

    Changes: kernels that fill the device, copies and data loading take twice as long. Kernels too small to fill the
    device, the optimizer, collectives and the other host time stay the same. The window of the returned graph is the
    time for the recorded number of samples, which need half as many steps.
    Assumes: there is enough memory, and training converges as well with the larger batch.
    Bounds: in the low estimate, small kernels take 1.5 times as long. The high estimate equals the expected one.

    On the CPU, only micro-batches can be predicted. All but the first then take OF_WORK_ON_CPU of the part of the step
    that is not launch overhead. Returns None if there are none.
    """
    recording = graph.base.recording
    portions = micro_batches(recording).others
    if not recording.on_device:
        work = 1 - recording.account.share(Regime.LAUNCH)
        return scaled_on_cpu(graph, portions, OF_WORK_ON_CPU[estimate] * work) if len(portions) else None
    if len(portions):
        return without_repeats(graph, portions, PORTIONS_LEFT[estimate], LARGE_KERNELS[estimate])
    items, ops = graph.items, graph.base.ops
    small = underfilled(ops, recording.trace.multiprocessors)[items.op]
    optimizer = graph.issued_in(recording.optimizer_steps)
    grows = np.where(
        graph.with_work(*COMPUTE_KERNELS), np.where(small, SMALL_KERNEL_GROWTH[estimate], BATCH_FACTOR), 1.0
    )
    grows = np.where(
        graph.with_work(Work.UPLOAD, Work.DOWNLOAD, Work.DEVICE_COPY), BATCH_FACTOR, np.where(optimizer, 1.0, grows)
    )
    gap = graph.gap_scaled(Activity.LOAD_BATCH, BATCH_FACTOR)
    return graph.with_items(length=scale_column(items.length, grows), gap=gap).with_batch(BATCH_FACTOR)


LARGER_BATCH = Scenario("batch", with_larger_batch, on_cpu=True)

FIXES = {"small_batch": LARGER_BATCH}
"""The scenario that simulates the fix of each cause."""
