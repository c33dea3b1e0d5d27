"""How the times of a step grow with its samples."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, MIN_LINK_BOUND_BYTES, SHORTEST_KERNEL_NS, Work
from tb_bottleneck.trace.table import Bools, Floats

# The share of its roof that a sufficiently large kernel reaches. Each of eleven public recordings gives a median of
# this share over its kernels above 100 us. These medians are 0.19 to 0.90; the middle one is 0.51, the second and the
# ninth are 0.24 and 0.89.
ROOF_SHARE = {Estimate.EXPECTED: 0.5, Estimate.LOW: 0.25, Estimate.HIGH: 0.9}


def scale_batches(graph: ModifiedGraph, grows: float) -> ModifiedGraph:
    """Returns the graph in which the host makes and copies batches with `grows` times as many samples. Staging a small
    copy takes the same time for any size."""
    ops = graph.base.ops
    large = (graph.items.op >= 0) & (ops.bytes[graph.items.op] >= MIN_LINK_BOUND_BYTES)
    graph = graph.with_items(gap=graph.gap_scaled(Activity.LOAD_BATCH, grows))
    return graph.with_items(gap=graph.gap_scaled(Activity.COPY, np.where(large, grows, 1.0)))


def device_time_factors(recording: Recording, grows: float, estimate: Estimate) -> Floats:
    """Returns per operation of the judged device (time with the new batch size / recorded time).

    `grows` is (new samples per step / recorded ones). Operations of the optimizer and collectives keep their time.
    `estimate` selects the expected, the longest (LOW) or the shortest (HIGH) plausible time.
    """
    ops = recording.trace.device_ops
    length = np.maximum(ops.end - ops.start, 1).astype(np.float64)
    kernels = np.isin(ops.work, COMPUTE_KERNELS)
    copies = np.isin(ops.work, (Work.UPLOAD, Work.DOWNLOAD, Work.DEVICE_COPY))
    start = np.minimum(length, SHORTEST_KERNEL_NS)
    in_proportion = (start + (length - start) * grows) / length
    is_known = recording.kernel_bounds.bound_by != BoundBy.UNKNOWN
    by_waves = _by_waves(recording, in_proportion, grows)
    if estimate is not Estimate.EXPECTED:
        # A kernel with an unknown share of its roof may have the middle share of all kernels.
        typical = _by_roof(np.full(len(ops), ROOF_SHARE[Estimate.EXPECTED]), grows, estimate)
        by_waves = np.minimum(by_waves, typical) if grows > 1 else np.maximum(by_waves, typical)
    grown = np.where(is_known, _by_roof(recording.kernel_bounds.reached, grows, estimate), by_waves)
    factors = np.where(kernels, grown, np.where(copies, in_proportion, 1.0))
    return np.asarray(np.where(_updates(recording), 1.0, np.maximum(factors, 1e-6)), np.float64)


def _by_roof(reached: Floats, grows: float, estimate: Estimate) -> Floats:
    """Returns per kernel (time if its work is multiplied by `grows` / recorded time), from the share of its roof (the
    highest rate of the device for the kernel) that it reaches.

    `reached` is the share (0 to 1) of the roof that each kernel reaches now. With enough work, a kernel would reach the
    share ROOF_SHARE of its roof. For a kernel below this share, the part of its time that exceeds the time at
    ROOF_SHARE is a fixed cost and does not grow.
    """
    full = np.maximum(reached, ROOF_SHARE[estimate])
    fixed = 1 - reached / full
    return np.asarray(fixed + (1 - fixed) * grows, np.float64)


def _by_waves(recording: Recording, in_proportion: Floats, grows: float) -> Floats:
    """Returns per kernel (time if its grid is multiplied by `grows` / recorded time), at most `in_proportion`.

    A larger grid first fills idle multiprocessors, and the kernel takes longer only if its grid has more blocks than
    there are multiprocessors. `in_proportion` are the factors if the time is proportional to the work; they are
    returned where the number of blocks or of multiprocessors is not known.
    """
    blocks, processors = recording.trace.device_ops.blocks, recording.trace.multiprocessors
    if not processors:
        return in_proportion
    before = np.minimum(blocks / processors, 1.0)
    after = np.minimum(np.maximum(blocks * grows, 1.0) / processors, 1.0)
    return np.where(
        blocks > 0,
        np.minimum(in_proportion, np.maximum(grows * before / after, grows if grows < 1 else 1.0)),
        in_proportion,
    )


def _updates(recording: Recording) -> Bools:
    """Returns a mask of the operations that the optimizer launched. Their time does not depend on the batch size."""
    trace = recording.trace
    ops = trace.device_ops
    issued = trace.calls.start[ops.call] if len(trace.calls) else ops.start
    mask: Bools = ops.launched & recording.optimizer_time.contains(issued)
    return mask
