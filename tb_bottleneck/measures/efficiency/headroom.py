"""Measures of what a run without a problem could still gain: distances to roofs, other layouts, other devices.

A roof is the peak rate of the device (arithmetic or bandwidth) that limits a kernel.
"""

import re

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import heaviest_value
from tb_bottleneck.base.intervals import clip, union
from tb_bottleneck.base.measure import Measure, Missing, Record
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.knowledge.catalogue import Precision, precision_of
from tb_bottleneck.knowledge.gpus import USABLE_LINK_SHARE, Gpu, entries, lane_rates
from tb_bottleneck.knowledge.texts import larger_device_names
from tb_bottleneck.measures.efficiency.utilisation import utilisation
from tb_bottleneck.measures.trace.window import device_work, in_host_steps, window_share
from tb_bottleneck.memory.weights import weights_read
from tb_bottleneck.roofline.device_peaks import DensePeaks, data_sheet_of
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.roofline.operator_args import itemsize
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, Work
from tb_bottleneck.trace.forward_links import ACCUMULATION
from tb_bottleneck.trace.kernel_names import name_matches, short
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.process_facts import parameter_bytes

# cuDNN and MIOpen convert between the layouts of images with kernels of these names.
_LAYOUT = re.compile(r"nchwToNhwc|nhwcToNchw|nchw2nhwc|nhwc2nchw|batched_transpose_")
# A device with a smaller upper bound of the speed-up is offered only if no device reaches WORTH_FROM.
WORTH_FROM = 1.3
MAX_OPERATORS = 3
MAX_NAME = 60  # characters of a kernel's name
ALL_REDUCE_DEVICES = 8  # of one machine


class Distance(Record, frozen=True):
    """The kernels that one operator launches, and how far they are from their roofs. All numbers are shares from 0 to
    1.

    `kernel` is the name of the kernel with the most time. `share` is the share of the window in the operator's kernels.
    `reached` is the part of the kernels' time that they would take at their roofs. `beyond` is the other part of their
    time, as a share of the window. `roof` is the regime of the roof that limits most of their time: `compute` or
    `memory`.
    """

    operator: str
    kernel: str
    share: float
    reached: float
    roof: Regime
    beyond: float


def distances(recording: Recording) -> list[Distance]:
    """Returns the MAX_OPERATORS operators whose kernels take the most time beyond their time at the roofs, sorted by
    this time, longest first."""
    trace, ops, bounds = recording.trace, recording.trace.device_ops, recording.kernel_bounds
    if not len(ops) or not len(trace.calls):
        return []
    steps = recording.steps
    rows = np.flatnonzero((bounds.bound_by != BoundBy.UNKNOWN) & (ops.end > steps.begin) & (ops.start < steps.end))
    if not len(rows):
        return []
    operator = trace.events.name[trace.calling_operators[1][ops.call[rows]]]
    names, group = np.unique(operator, return_inverse=True)
    length = (ops.end - ops.start)[rows].astype(np.float64)
    reached = np.minimum(bounds.reached[rows], 1.0)
    total = np.bincount(group, length)
    at_roof = np.bincount(group, length * reached)
    compute = np.bincount(group, length * (bounds.bound_by[rows] == BoundBy.COMPUTE))
    window = recording.account.window
    return [
        Distance(
            operator=trace.names[int(names[one])],
            kernel=short(trace.names[heaviest_value(ops.name[rows[group == one]], length[group == one])], MAX_NAME),
            share=min(float(total[one] / window), 1.0),
            reached=float(at_roof[one] / total[one]),
            roof=Regime.COMPUTE if 2 * compute[one] >= total[one] else Regime.MEMORY,
            beyond=min(float((total[one] - at_roof[one]) / window), 1.0),
        )
        for one in np.argsort(at_roof - total, kind="stable").tolist()[:MAX_OPERATORS]
        if total[one] > 0
    ]


def layout_share(recording: Recording) -> Measure | Missing:
    """Share of the window in kernels that convert the memory layout of images (NCHW to NHWC or back)."""
    if not recording.on_device:
        return Missing("the work ran on the CPU: there are no kernels")
    ops = device_work(recording, Work.STREAMING, Work.CONTRACTION, Work.UNKNOWN)
    ops = ops.take(name_matches(recording.trace.names, ops.name, lambda name: bool(_LAYOUT.search(name))))
    return window_share(recording, ops.start, ops.end)


class LargerDevice(Record, frozen=True):
    """A device that is faster than the device of the run.

    `arithmetic` and `bandwidth` are rates of the faster device / rates of the run's device. `unchanged` is the share of
    the window that neither rate changes. `speedup` is the upper bound of the ratio: step time now / step time on the
    faster device.
    """

    name: str
    arithmetic: float
    bandwidth: float
    unchanged: float  # share of the window that neither changes
    speedup: float


def larger_device(recording: Recording) -> LargerDevice | Missing:
    """Returns the first listed faster device of the same vendor for which the upper bound of the speed-up is at least
    WORTH_FROM. If there is none, returns the faster device with the highest bound.

    For the bound, only kernels that fill the device become faster. Kernels limited by arithmetic change by the ratio of
    the dense peaks of the run's main number type, other such kernels by the ratio of the bandwidths. All other time
    stays the same, and no step is shorter than its collectives.
    """
    known = data_sheet_of(recording.trace) if recording.on_device else None
    if known is None:
        return Missing("the device is not known")
    gpu, precision = known[0], _main_precision(recording)
    peak = _peak(gpu, precision)
    if peak is None:
        return Missing("the type of the products is not known")
    found = [_bound(recording, gpu, other, peak, precision) for other in _faster(gpu, peak, precision)]
    worth = [device for device in found if device.speedup >= WORTH_FROM]
    best = max(found, key=lambda device: device.speedup, default=None)
    return Missing("no faster device is listed") if best is None else (worth or [best])[0]


def _faster(gpu: Gpu, peak: float, precision: Precision) -> list[Gpu]:
    """Returns the listed devices of the same vendor that are faster than `gpu`: their peak and their bandwidth are at
    least those of `gpu`, and one of the two is higher. `peak` is the dense peak of `gpu` for the type `precision`, in
    FLOP/s."""
    by_name = {entry.gpu.name: entry.gpu for entry in entries()}
    listed = [by_name[name] for name in larger_device_names()]
    return [
        other
        for other in listed
        if _is_amd(gpu) == _is_amd(other)
        and (rate := _peak(other, precision)) is not None
        and rate >= peak
        and other.bandwidth >= gpu.bandwidth
        and (rate, other.bandwidth) != (peak, gpu.bandwidth)
    ]


def _bound(recording: Recording, gpu: Gpu, other: Gpu, peak: float, precision: Precision) -> LargerDevice:
    """Returns `other` as a faster device, with the upper bound of the speed-up. The arguments are as in `_faster`."""
    account = recording.account
    compute, memory = account.share(Regime.COMPUTE), account.share(Regime.MEMORY)
    unchanged = max(1.0 - compute - memory, 0.0)
    arithmetic, bandwidth = (_peak(other, precision) or peak) / peak, other.bandwidth / gpu.bandwidth
    step = max(unchanged + compute / arithmetic + memory / bandwidth, traffic_share(recording))
    return LargerDevice(other.name, arithmetic, bandwidth, unchanged, 1 / step)


def traffic_share(recording: Recording) -> float:
    """Returns the share of the window in which collectives run, including collectives hidden by other work."""
    ops, steps = recording.trace.device_ops, recording.steps
    collectives = ops.take(ops.work == Work.COLLECTIVE)
    spans = clip(union(collectives.start, collectives.end), steps.begin, steps.end)
    return spans.total() / recording.account.window


def gradient_bytes(recording: Recording) -> Measure | Missing:
    """Bytes of the gradients per step, from the recorded shapes of the gradients that autograd accumulates."""
    trace, events = recording.trace, recording.trace.events
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[in_host_steps(recording, events.start[rows])]
    rows = rows[name_matches(trace.names, events.name[rows], ACCUMULATION.__eq__)]
    signatures, counts = np.unique(events.signature[rows], return_counts=True)
    total = 0
    for signature, count in zip(signatures.tolist(), counts.tolist(), strict=True):
        operands = operands_of(trace.signatures[signature]) if signature else None
        size = itemsize(operands.types[0]) if operands is not None and operands.types and operands.dims else None
        if operands is None or size is None:
            return Missing("the shapes of the gradients were not recorded")
        total += count * size * int(np.prod(operands.dims[0]))
    if not total:
        return Missing("no gradient was recorded")
    return Measure(total / len(recording.steps), "bytes", "step", len(rows))


def recorded_parameter_bytes(recording: Recording) -> Measure | Missing:
    """Bytes of the model's parameters, as the training process counted them; otherwise, bytes of the weights that the
    recorded modules read."""
    counted = parameter_bytes(recording.trace.header.context.get("parameters_by_dtype"))
    if counted is not None:
        return Measure(counted, "bytes", source="context")
    read = weights_read(recording.trace)
    return (
        Measure(float(read), "bytes") if read else Missing("neither parameters nor modules with shapes were recorded")
    )


def all_reduce_ns(gpu: Gpu | None, size: float) -> Measure | Missing:
    """Shortest time (ns) of an all-reduce of `size` bytes among ALL_REDUCE_DEVICES devices of the kind `gpu` in one
    machine.

    A ring of n devices sends 2 (n - 1) / n times the bytes over each link (nccl-tests, doc/PERFORMANCE.md).
    """
    rate = _link_rate(gpu) if gpu is not None else None
    if rate is None:
        return Missing("the link between the devices is not known")
    sent = 2 * (ALL_REDUCE_DEVICES - 1) / ALL_REDUCE_DEVICES * size
    return Measure(sent / rate, "ns", "step")  # GB/s are bytes per ns


def _link_rate(gpu: Gpu) -> float | None:
    """Returns the rate of the link between two devices of the kind `gpu` in GB/s: of NVLink, or else of PCIe. Returns
    None if the rate is not known."""
    if gpu.nvlink is not None:
        return gpu.nvlink
    lane = lane_rates().get(gpu.pcie_generation or 0)
    return lane * (gpu.pcie_lanes or 0) * USABLE_LINK_SHARE if lane and gpu.pcie_lanes else None


def _main_precision(recording: Recording) -> Precision:
    """Returns the number type of most floating-point operations. Without recorded shapes, returns the type in the name
    of a kernel: of those kernels whose names have a type, the one with the most time."""
    if types := utilisation(recording).types:
        return Precision("tensor" if types[0].dtype != "fp32" else "vector", types[0].dtype)
    ops = device_work(recording, *COMPUTE_KERNELS)
    typed = name_matches(recording.trace.names, ops.name, lambda name: _typed(precision_of(name)))
    if not typed.any():
        return Precision("unknown", None)
    ops = ops.take(typed)
    return precision_of(recording.trace.names[heaviest_value(ops.name, ops.end - ops.start)]) or Precision("", None)


def _typed(precision: Precision | None) -> bool:
    return precision is not None and precision.dtype is not None


def _peak(gpu: Gpu, precision: Precision) -> float | None:
    """Returns the device's dense peak for the type `precision` in FLOP/s, or None if the peak is not known."""
    return DensePeaks(gpu.tflops, gpu.name, "").of(precision)


def _is_amd(gpu: Gpu) -> bool:
    return gpu.name.startswith(("MI", "Radeon", "Instinct"))
