"""The scenario of a larger batch."""

import numpy as np

from tb_bottleneck.base.measure import known_value
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.launch.fixes import without_repeats
from tb_bottleneck.bottlenecks.launch.micro_batches import batch_to_try, micro_batches
from tb_bottleneck.bottlenecks.underfilled.batch_growth import device_time_factors, scale_batches
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenario import Scenario, scaled_on_cpu

BATCH_FACTOR = 2
PORTIONS_LEFT = {Estimate.EXPECTED: 0.0, Estimate.LOW: 0.1, Estimate.HIGH: 0.0}
LARGE_KERNELS = {Estimate.EXPECTED: 1.0, Estimate.LOW: 1.0, Estimate.HIGH: 0.5}
"""The part of the host time of all micro-batches but the first that remains in one pass, and the time of kernels that
fill the device, relative to their time in micro-batches: larger kernels use the device better. The bounds are
chosen."""
OF_WORK_ON_CPU = {Estimate.EXPECTED: 0.5, Estimate.LOW: 1.0, Estimate.HIGH: 0.0}
"""The part of the operators' own work that remains if operators compute all samples at once. Two trainings gained 1.8
and 16.9 times; the bounds are those of what is possible."""


def with_larger_batch(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Computes more samples per step: `batch_to_try` times as many if that is known, otherwise twice as many. If a step
    computes its batch in micro-batches, computes the batch in one pass instead (launch/fixes.py: without_repeats).

    Changes: device times, copies and data loading grow with the samples (batch_growth.py). The other host time stays
    the same. The window of the returned graph is the time for the recorded number of samples, which need fewer steps.
    Assumes: there is enough memory, and training converges as well with the larger batch.

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
    grows, items = known_value(batch_to_try(recording)) or BATCH_FACTOR, graph.items
    factors = np.where(items.op >= 0, device_time_factors(recording, grows, estimate)[items.op], 1.0)
    return scale_batches(graph.with_items(length=scale_column(items.length, factors)), grows).with_batch(grows)


LARGER_BATCH = Scenario("batch", with_larger_batch, on_cpu=True)

FIXES = {"small_batch": LARGER_BATCH}
"""The scenario that simulates the fix of each cause."""
