"""Another number of samples per step."""

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.comparison.devices.kernel_scaling import LARGE_COPY_BYTES, SHORTEST_KERNEL_NS
from tb_bottleneck.comparison.what_if.changes.change import CannotPredict, Change
from tb_bottleneck.comparison.workload.batch_size import batch_size_of
from tb_bottleneck.comparison.workload.operator_time import optimizer_spans
from tb_bottleneck.measure import Missing
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work
from tb_bottleneck.trace.table import Bools, Floats

MAX_SAMPLES = 1 << 30
# What a kernel that is large enough reaches of its roof. Kernels above 100 us reach 0.19 to 0.90 of it at the median of
# each of eleven public recordings; 0.51 is the middle of these medians, 0.24 and 0.89 are the second and the ninth.
ROOF_SHARE = {Estimate.EXPECTED: 0.5, Estimate.LOW: 0.25, Estimate.HIGH: 0.9}


def change_batch_size(recording: Recording, samples: int) -> Change:
    """`samples` per step.

    Raises:
        Unpredictable: how many there are now is not known.
    """
    now = batch_size_of(recording)
    if isinstance(now, Missing):
        raise CannotPredict(f"{now.because[0].upper()}{now.because[1:]}.")
    if not 1 <= samples <= MAX_SAMPLES:
        raise CannotPredict(f"A step works on 1 to {MAX_SAMPLES} samples.")
    if not recording.on_device:
        raise CannotPredict("The work ran on the CPU, where no kernel tells how its time grows with the batch.")
    grows = samples / now.samples
    updates = _updates(recording)

    def factors(estimate: Estimate) -> Floats:
        return _factors(recording, grows, updates, estimate)

    def change(graph: ModifiedGraph, estimate: Estimate) -> ModifiedGraph:
        gap, ops = graph.items.gap.copy(), graph.base.ops
        # What staging a small copy takes is its start, whatever its size.
        large = (graph.items.op >= 0) & (ops.bytes[graph.items.op] >= LARGE_COPY_BYTES)
        for activity, rows in ((Activity.LOAD_BATCH, np.ones(len(large), np.bool_)), (Activity.COPY, large)):
            gap[rows, activity] = np.rint(gap[rows, activity] * grows).astype(np.int64)
        return graph.with_items(gap=gap)

    told = (
        f"a step works on {now.samples} sample{'s' if now.samples > 1 else ''} now ({now.basis})",
        "device time grows with the samples, except of the optimizer and of collectives; grids that leave "
        "multiprocessors idle fill them first",
        "making and copying a batch takes time in proportion; the memory suffices; the training converges as well",
    )
    return Change(
        f"a step worked on {samples} sample{'s' if samples > 1 else ''}",
        told,
        factors=factors,
        modify=change,
        samples=grows,
    )


def _factors(recording: Recording, grows: float, updates: Bools, estimate: Estimate) -> Floats:
    ops = recording.trace.device_ops
    length = np.maximum(ops.end - ops.start, 1).astype(np.float64)
    kernels = np.isin(ops.work, COMPUTE_KERNELS)
    copies = np.isin(ops.work, (Work.UPLOAD, Work.DOWNLOAD, Work.DEVICE_COPY))
    start = np.minimum(length, SHORTEST_KERNEL_NS)
    in_proportion = (start + (length - start) * grows) / length
    known = recording.kernel_bounds.bound_by != BoundBy.UNKNOWN
    untold = _by_waves(recording, in_proportion, grows)
    if estimate is not Estimate.EXPECTED:
        # Of a kernel of which nobody knows how near its roof it comes, the middle of all stands for it.
        usual = _by_roof(np.full(len(ops), ROOF_SHARE[Estimate.EXPECTED]), grows, estimate)
        untold = np.minimum(untold, usual) if grows > 1 else np.maximum(untold, usual)
    grown = np.where(known, _by_roof(recording.kernel_bounds.reached, grows, estimate), untold)
    found = np.where(kernels, grown, np.where(copies, in_proportion, 1.0))
    return np.asarray(np.where(updates, 1.0, np.maximum(found, 1e-6)), np.float64)


def _by_roof(reached: Floats, grows: float, estimate: Estimate) -> Floats:
    """A kernel far below its roof spends a part of its time whatever its size, and the rest as near the roof as any."""
    full = np.maximum(reached, ROOF_SHARE[estimate])
    fixed = 1 - reached / full
    return np.asarray(fixed + (1 - fixed) * grows, np.float64)


def _by_waves(recording: Recording, in_proportion: Floats, grows: float) -> Floats:
    """A grid that leaves multiprocessors idle fills them before it takes longer."""
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
    """Operations that the optimizer launched: they are about parameters, whatever the batch."""
    trace = recording.trace
    ops = trace.device_ops
    issued = trace.calls.start[ops.call] if len(trace.calls) else ops.start
    found: Bools = ops.launched & optimizer_spans(recording).contains(issued)
    return found
