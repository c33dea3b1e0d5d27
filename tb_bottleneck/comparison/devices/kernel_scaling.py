"""Predicts how long each device operation of a recording takes on another device, and how loader workers limit steps.

A is the device of the recording, B the other device. The time depends on the roof (arithmetic rate or memory bandwidth)
that limits the operation. If shapes give the work of a kernel, the kernel is assumed to reach the same share of its
roof on B as on A: its time on B is the longer of its times at B's arithmetic rate and at B's bandwidth, divided by that
share. Of a kernel that memory limits, only the part at its roof scales with the bandwidth, and the rest with the vector
units. If only the name of the kernel gives the roof, its time is scaled by the ratio of that roof. A grid that leaves
multiprocessors idle uses only a part of a device (wave scaling of Habitat, Yu et al., ATC'21). Very short kernels are
limited by the time to start and end a kernel, and keep their time. In the worst case, a slower device lengthens very
short kernels, too.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.host_activity import Activity
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.bottlenecks.compute.product_precision import operand_type, rows_by_name, times_at_recorded_roofs
from tb_bottleneck.bottlenecks.input.loader import LONGEST_HANDOVER_NS
from tb_bottleneck.bottlenecks.input.loader_workers import made_by_workers, workers_are_behind
from tb_bottleneck.comparison.devices.device_rates import VECTOR_FP32, DeviceModel, speed_ratio
from tb_bottleneck.knowledge.catalogue import Precision, precision_of
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph
from tb_bottleneck.roofline.kernel_bounds import TOO_SHORT_NS, BoundBy
from tb_bottleneck.roofline.operator_args import with_operand_type
from tb_bottleneck.trace.device_ops import (
    COMPUTE_KERNELS,
    MIN_LINK_BOUND_BYTES,
    SHORTEST_KERNEL_NS,
    DeviceOps,
    Work,
)
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.table import Bools, Floats, Ints

# Predictions of a training's step time on other devices have a mean error of 11.8 % (Habitat, ATC'21, over six GPUs).
# In a normal distribution, the 5 % and 95 % quantiles are 1.645 / sqrt(2 / pi) = 2.06 mean errors from the middle.
SAME_VENDOR_ERROR = 0.118 * 2.06
# All six GPUs were of one vendor. Another vendor's libraries have their own kernels, and the share of the data sheet
# that even the best product reaches differs by this much (80 % on an H100 and 51 % on an MI300X, gpus.toml): any kernel
# may differ as much.
OTHER_VENDOR_ERROR = 0.57
KERNEL_NAME_UNITS = ("tensor", "vector")  # units that the name of a kernel may contain


@dataclass(frozen=True, eq=False)
class DevicePair:
    """The device `a` of the recording, and the device `b` to predict. Ratios are (rate of `b` / rate of `a`)."""

    a: DeviceModel
    b: DeviceModel

    @property
    def link_ratio(self) -> float | None:
        """Ratio of the rates of the links between host and device; None if a rate is not known."""
        return self.b.link / self.a.link if self.a.link and self.b.link else None

    @property
    def peer_ratio(self) -> float | None:
        """Returns (rate of the link from device to device on `b` / the same rate on `a`); None if one of the rates is
        not known."""
        return self.b.peers / self.a.peers if self.a.peers and self.b.peers else None

    @property
    def bandwidth_ratio(self) -> float:
        """Ratio of the bandwidths that copies in device memory reach."""
        return self.b.copy_bandwidth / self.a.copy_bandwidth

    @property
    def kernel_error(self) -> float:
        """The relative error of predicted kernel times at the 5 % and the 95 % quantile: 0.24 means a factor of
        1.24."""
        return SAME_VENDOR_ERROR if self.a.vendor == self.b.vendor else OTHER_VENDOR_ERROR


def scaled_lengths(recording: Recording, devices: DevicePair, estimate: Estimate) -> Floats:
    """Returns the predicted length in ns of each operation of the judged device if it runs on `devices.b`.

    `estimate` selects the expected length, the longest (LOW) or the shortest (HIGH) plausible length.
    """
    ops = recording.trace.device_ops
    length = (ops.end - ops.start).astype(np.float64)
    after = length.copy()
    kernels = np.isin(ops.work, COMPUTE_KERNELS)
    after[kernels] = _kernel_times(recording, devices, estimate, kernels, length)
    inner = (ops.work == Work.DEVICE_COPY) & (length >= TOO_SHORT_NS)
    after[inner] = length[inner] / devices.bandwidth_ratio
    if devices.a.link and devices.link_ratio:
        copies = link_bound_copies(recording, ops)
        after[copies] *= link_time_factors(ops, devices.a.link, devices.link_ratio, estimate)[copies]
    peers = np.isin(ops.work, (Work.COLLECTIVE, Work.PEER_COPY))
    after[peers] = length[peers] / (devices.peer_ratio or 1.0)
    return after


def bounds_on_b(recording: Recording, devices: DevicePair) -> Ints:
    """Returns what limits each operation of the recording on `devices.b`, as BoundBy: arithmetic or memory. The value
    is UNKNOWN if the limit of the operation on the recorded device is not known."""
    at_peak, at_bandwidth = times_at_roofs(recording, devices)
    bounds = np.where(at_peak >= at_bandwidth, BoundBy.COMPUTE, BoundBy.MEMORY)
    return np.where(recording.kernel_bounds.bound_by == BoundBy.UNKNOWN, BoundBy.UNKNOWN, bounds)


def times_at_roofs(recording: Recording, devices: DevicePair | None) -> tuple[Floats, Floats]:
    """Returns two arrays with one value per operation of the judged device: time at the peak arithmetic rate / recorded
    time, and time at the peak bandwidth / recorded time.

    The peaks are those of `devices.b`, or of the recorded device if `devices` is None. Unknown values are 0.
    """
    at_peak, at_bandwidth = times_at_recorded_roofs(recording)
    if devices is None:
        return at_peak, at_bandwidth
    return at_peak / _ratios(recording, devices, Estimate.EXPECTED)[0], at_bandwidth / devices.bandwidth_ratio


def _kernel_times(
    recording: Recording, devices: DevicePair, estimate: Estimate, kernels: Bools, length: Floats
) -> Floats:
    """Returns the predicted times on `devices.b` in ns of the operations in the mask `kernels`. `length` has the
    recorded length in ns of each operation. `estimate` is as in scaled_lengths."""
    ops, bounds = recording.trace.device_ops, recording.kernel_bounds
    _, least = _ratios(recording, devices, estimate)
    fill = _fill_ratio(ops.blocks, devices)
    known = bounds.bound_by != BoundBy.UNKNOWN
    at_peak, at_bandwidth = times_at_roofs(recording, devices)
    by_roof = np.maximum(at_peak, at_bandwidth) / np.where(known, np.maximum(bounds.reached, 1e-9), 1.0)
    if estimate is not Estimate.HIGH:
        by_roof = np.where(
            bounds.bound_by == BoundBy.MEMORY, _beside_the_roof(by_roof, bounds.reached, devices), by_roof
        )
    by_kind = np.where(
        ops.work == Work.CONTRACTION,
        1 / least,
        np.where(ops.work == Work.STREAMING, 1 / devices.bandwidth_ratio, 1 / least),
    )
    # The recorded time already includes the share of the device that the grid can use; only its change counts.
    factor = np.where(known, by_roof, by_kind) / fill
    error = {
        Estimate.EXPECTED: 1.0,
        Estimate.LOW: 1 + devices.kernel_error,
        Estimate.HIGH: 1 / (1 + devices.kernel_error),
    }[estimate]
    after = np.maximum(length * factor * error, np.minimum(length, SHORTEST_KERNEL_NS))
    # A faster device does not shorten the shortest kernels; a slower one may lengthen the part that is work.
    short = (
        np.maximum(length, SHORTEST_KERNEL_NS + (length - SHORTEST_KERNEL_NS) * factor)
        if estimate is Estimate.LOW
        else length
    )
    after = np.where(length < TOO_SHORT_NS, short, after)
    return np.asarray(after[kernels], np.float64)


def _beside_the_roof(by_roof: Floats, reached: Floats, devices: DevicePair) -> Floats:
    """Returns the factors `by_roof` for kernels limited by memory, mixed with the ratio of the vector units' rates.

    `reached` is the time at the peak bandwidth / the recorded time. Only this part of the time is spent on the memory;
    in the rest, the kernel waits for its own instructions. An H200 is an H100 with 1.41 times the bandwidth: of four
    trainings, which were 1.02, 1.07, 1.10 and 1.30 times as fast, equal shares of the roof predict 1.03, 1.17, 1.31 and
    1.37, and these parts 1.02, 1.11, 1.11 and 1.31.
    """
    execution = 1 / (speed_ratio(devices.a, devices.b, VECTOR_FP32) or devices.bandwidth_ratio)
    part = np.clip(reached, 0.0, 1.0)
    return np.asarray(part * by_roof + (1 - part) * execution)


def _ratios(recording: Recording, devices: DevicePair, estimate: Estimate) -> tuple[Floats, Floats]:
    """Returns two ratios (rate of B / rate of A) for each operation: the ratio of the arithmetic rates, and the ratio
    to use if it is not known whether arithmetic or bandwidth limits the operation.

    Matrix multiplications with an unknown roof (limit) are expected to be limited by arithmetic. For other kernels, the
    smaller of the ratios of arithmetic and bandwidth is expected. The worst case uses the smaller ratio for all
    kernels, the best case the larger one. If the name does not give the unit, vector units are considered too.
    """
    ops = recording.trace.device_ops
    arithmetic, vector = np.ones(len(ops)), np.ones(len(ops))
    vector_ratio = speed_ratio(devices.a, devices.b, VECTOR_FP32)
    for name, rows in rows_by_name(ops.name):
        precision = with_operand_type(precision_of(recording.trace.names[name]), operand_type(recording, int(rows[0])))
        ratio = speed_ratio(devices.a, devices.b, precision) or vector_ratio or devices.bandwidth_ratio
        unit_is_known = precision is not None and precision.unit in KERNEL_NAME_UNITS
        arithmetic[rows], vector[rows] = ratio, ratio if unit_is_known else vector_ratio or ratio
    lower = np.minimum(np.minimum(arithmetic, vector), devices.bandwidth_ratio)
    upper = np.maximum(np.maximum(arithmetic, vector), devices.bandwidth_ratio)
    expected = np.where(ops.work == Work.CONTRACTION, arithmetic, lower)
    return arithmetic, {Estimate.EXPECTED: expected, Estimate.LOW: lower, Estimate.HIGH: upper}[estimate]


def _fill_ratio(blocks: Ints, devices: DevicePair) -> Floats:
    """Returns for each kernel (share of the multiprocessors of B that its grid uses / share of those of A); 1 if the
    size of the grid or a number of multiprocessors is not known. `blocks` has the number of blocks of each grid."""
    if not devices.a.multiprocessors or not devices.b.multiprocessors:
        return np.ones(len(blocks))
    shares = [np.minimum(blocks / device.multiprocessors, 1.0) for device in (devices.a, devices.b)]  # type: ignore[operator]
    return np.where(blocks > 0, shares[1] / np.maximum(shares[0], 1e-9), 1.0)


def link_bound_copies(recording: Recording, ops: DeviceOps) -> Bools:
    """Returns a mask of the operations `ops` that the link between host and device limits: copies of at least
    MIN_LINK_BOUND_BYTES, except those of pageable memory, which the host stages."""
    trace = recording.trace
    staged = name_matches(trace.names, ops.name, lambda name: "Pageable" in name)
    mask: Bools = np.isin(ops.work, (Work.UPLOAD, Work.DOWNLOAD)) & (ops.bytes >= MIN_LINK_BOUND_BYTES) & ~staged
    return mask


def link_time_factors(ops: DeviceOps, now: float, ratio: float, estimate: Estimate) -> Floats:
    """Returns for each operation, (time over a link that is `ratio` times as fast / recorded time), computed as if the
    operation were a copy.

    `now` is the usable rate of the recorded link in GB/s. Only the time that the bytes take at this rate changes with
    the link; the remaining recorded time stays the same. The more extreme estimate (HIGH for a faster link, LOW for a
    slower one) scales the whole time, as if the recorded link were degraded.
    """
    part = np.minimum(ops.bytes / now / np.maximum(ops.end - ops.start, 1), 1.0)
    if estimate is (Estimate.HIGH if ratio > 1 else Estimate.LOW):
        part = np.ones(len(ops))
    return np.asarray(1 - part + part / ratio, np.float64)


def vendor_assumptions(devices: DevicePair) -> tuple[str, ...]:
    """Returns a tuple with a caveat if the devices are of different vendors; otherwise empty."""
    if devices.a.vendor == devices.b.vendor:
        return ()
    return (
        f"{devices.b.vendor}'s libraries have their own kernels: the share of the roof that each reaches is "
        "unknown, so the interval is wide; measure on such a device before you buy one",
    )


def collective_assumptions(recording: Recording) -> tuple[str, ...]:
    """Returns a tuple with the assumption about collectives; empty if the recording has no collectives."""
    if not (recording.trace.device_ops.work == Work.COLLECTIVE).any():
        return ()
    return ("all ranks move to such devices; waiting in collectives is scaled like the collectives",)


def precision_label(precision: Precision | None) -> str:
    """Returns a precision in words, such as "bf16 on tensor cores"."""
    if precision is None or precision.dtype is None:
        return "an unknown type"
    return f"{precision.dtype} on {'tensor cores' if precision.unit == 'tensor' else 'vector units'}"


WORKERS_LIMIT = "the workers keep their current pace, and training waits for them"
WORKERS_KEEP_UP = (
    "the workers still keep up; their maximum pace is unknown because nothing waits for them, so in the worst "
    "case it is their current pace"
)


def worker_throughput_limit(
    recording: Recording, estimate: Estimate = Estimate.EXPECTED
) -> Callable[[ModifiedGraph], ModifiedGraph] | None:
    """Returns a function that limits the window of a graph to the time that the loader workers need for its batches;
    None if there is no limit. The window is the judged part of the recording.

    A faster device does not make batches arrive sooner. If the training always waits for the workers, the window cannot
    get shorter than recorded. Workers that keep up are expected to keep up on a faster device; only in the LOW
    estimate, the recorded window is their limit. Also returns None if no workers make the batches, or if it is not
    known whether workers make them.
    """
    if not made_by_workers(recording):
        return None
    window = float(recording.account.window)
    if not workers_are_behind(recording):
        return (lambda graph: graph.with_floor(window)) if estimate is Estimate.LOW else None

    def change(graph: ModifiedGraph) -> ModifiedGraph:
        fetches = np.minimum(graph.items.gap.of(Activity.LOAD_BATCH), LONGEST_HANDOVER_NS)
        return graph.with_gap(Activity.LOAD_BATCH, fetches).with_floor(window)

    return change


def loader_assumptions(recording: Recording) -> tuple[str, ...]:
    """Returns a tuple with the assumption about the loader's workers; empty if there are no workers."""
    if not made_by_workers(recording):
        return ()
    return (WORKERS_LIMIT if workers_are_behind(recording) else WORKERS_KEEP_UP,)
