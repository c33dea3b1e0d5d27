"""The scenario of a larger batch."""

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import distinct_rows
from tb_bottleneck.base.measure import known_value
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.launch.fixes import without_repeats
from tb_bottleneck.bottlenecks.launch.micro_batches import batch_to_try, micro_batches
from tb_bottleneck.bottlenecks.underfilled.batch_growth import device_time_factors, scale_batches
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, scale_column
from tb_bottleneck.replay.scenario import Scenario, scaled_on_cpu
from tb_bottleneck.roofline.matmul import product_of
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.operands import operands_of

BATCH_FACTOR = 2
PORTIONS_LEFT = {Estimate.EXPECTED: 0.0, Estimate.LOW: 0.1, Estimate.HIGH: 0.0}
LARGE_KERNELS = {Estimate.EXPECTED: 1.0, Estimate.LOW: 1.0, Estimate.HIGH: 0.5}
"""The part of the host time of all micro-batches but the first that remains in one pass, and the time of kernels that
fill the device, relative to their time in micro-batches: larger kernels use the device better. The bounds are
chosen."""
ROWS_OF_WEIGHTS = {Estimate.EXPECTED: 40.0, Estimate.LOW: 10.0, Estimate.HIGH: 120.0}
"""On a CPU, a linear layer with its gradients takes as long for its weights, which are read, and whose gradients are
added to, as for so many rows of a batch: 14, 17, 38 and 100 with 1,024, 512, 256 and 128 columns (torch 2.13, one core
of an AMD EPYC)."""
USUAL_ROWS = 40.0  # if shapes were not recorded: half of the work is that of the weights


def with_larger_batch(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph | None:
    """Computes more samples per step: `batch_to_try` times as many if that is known, otherwise twice as many. If a step
    computes its batch in micro-batches, computes the batch in one pass instead (launch/fixes.py: without_repeats).

    Changes: device times, copies and data loading grow with the samples (batch_growth.py). The other host time stays
    the same. The window of the returned graph is the time for the recorded number of samples, which need fewer steps.
    Assumes: there is enough memory, and training converges as well with the larger batch.

    On the CPU, only micro-batches can be predicted. Of all but the first, the work of the operators remains that is not
    about the weights (ROWS_OF_WEIGHTS), but no launch overhead. Returns None if there are none.
    """
    recording = graph.base.recording
    portions = micro_batches(recording).others
    if not recording.on_device:
        rows = _rows_of_products(recording) or USUAL_ROWS
        work = (1 - recording.account.share(Regime.LAUNCH)) * rows / (rows + ROWS_OF_WEIGHTS[estimate])
        return scaled_on_cpu(graph, portions, work) if len(portions) else None
    if len(portions):
        return without_repeats(graph, portions, PORTIONS_LEFT[estimate], LARGE_KERNELS[estimate])
    grows, items = known_value(batch_to_try(recording)) or BATCH_FACTOR, graph.items
    factors = np.where(items.op >= 0, device_time_factors(recording, grows, estimate)[items.op], 1.0)
    return scale_batches(graph.with_items(length=scale_column(items.length, factors)), grows).with_batch(grows)


def _rows_of_products(recording: Recording) -> float:
    """Returns the mean number of rows of a batch in matrix products of the window, weighted by the times of their
    operators: the smallest size of each product, also of gradients. 0 without recorded shapes."""
    trace, events = recording.trace, recording.trace.events
    operators = trace.rows(Kind.CPU_OP)
    operators = operators[recording.in_window(events.start[operators])]
    first, which = distinct_rows(events.name[operators], events.signature[operators])
    times, total, weighted = np.bincount(which, events.duration[operators], len(first)), 0.0, 0.0
    for row, time in zip(operators[first].tolist(), times.tolist(), strict=True):
        operands = operands_of(trace.signatures[events.signature[row]])
        product = product_of(trace.names[events.name[row]], operands.dims) if operands is not None else None
        if product is not None:
            total, weighted = total + time, weighted + time * min(product.m, product.k, product.n)
    return weighted / total if total else 0.0


LARGER_BATCH = Scenario("batch", with_larger_batch, on_cpu=True)

FIXES = {"small_batch": LARGER_BATCH}
"""The scenario that simulates the fix of each cause."""
