"""How long each device operation of a recording would take on another device, by the roof that bounds it.

A kernel whose work is known from shapes keeps the share of its roof that it reached: its time is the longer of its
time at B's arithmetic and at B's bandwidth, over that share. One whose roof only its name tells is scaled by it alone.
A grid that leaves multiprocessors idle uses that much less of a device (one wave of blocks cannot use a second half of
the chip: the wave scaling of Habitat, Yu et al., ATC'21). What is over at once is bounded by starting and draining, and
stays as it is; at worst a slower device lengthens it too.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.comparison.devices.device_model import VECTOR_FP32, Device, speed_ratio
from tb_bottleneck.knowledge.precisions import Precision, precision_of
from tb_bottleneck.replay.modified_graph import Estimate
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.roofline.operand_precision import with_operand_type
from tb_bottleneck.roofline.underfilled import TOO_SHORT_NS
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, DeviceOps, Work
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Bools, Floats, Ints

# Predictions of operators' times on other devices miss by 11.8 % on average (Habitat, ATC'21, over six GPUs).
SAME_VENDOR_ERROR = 0.12
# All six were of one maker. Another maker's libraries bring kernels of their own, and what even the best product
# reaches of the data sheet differs by this much (80 % on an H100 and 51 % on an MI300X, gpus.toml): so may any kernel.
OTHER_VENDOR_ERROR = 0.57
# No kernel is over sooner than it takes to start and to drain: the shortest ones of 20 public recordings, V100 to H100
# and MI300X, take 1 to 5 us.
SHORTEST_KERNEL_NS = 2_000.0
# Smaller copies are bounded by their start and not by the link.
LARGE_COPY_BYTES = 1 << 20

KERNEL_NAME_UNITS = ("tensor", "vector")  # that a kernel's name may tell


@dataclass(frozen=True, eq=False)
class DevicePair:
    """From one device to another. `link` and `peers` are ratios of rates, None where they are not known."""

    a: Device
    b: Device

    @property
    def link(self) -> float | None:
        return self.b.link / self.a.link if self.a.link and self.b.link else None

    @property
    def peers(self) -> float | None:
        return self.b.peers / self.a.peers if self.a.peers and self.b.peers else None

    @property
    def bandwidth(self) -> float:
        return self.b.copied / self.a.copied

    @property
    def error(self) -> float:
        """By how much more or less a kernel may take than is foretold, as a factor less 1."""
        return SAME_VENDOR_ERROR if self.a.maker == self.b.maker else OTHER_VENDOR_ERROR


def scaled_lengths(recording: Recording, move: DevicePair, estimate: Estimate) -> Floats:
    """Nanoseconds of each operation of the trace's device on B."""
    ops = recording.trace.device_ops
    length = (ops.end - ops.start).astype(np.float64)
    after = length.copy()
    kernels = np.isin(ops.work, COMPUTE_KERNELS)
    after[kernels] = _kernel_times(recording, move, estimate, kernels, length)
    inner = (ops.work == Work.DEVICE_COPY) & (length >= TOO_SHORT_NS)
    after[inner] = length[inner] / move.bandwidth
    if move.a.link and move.link:
        copies = link_bound_copies(recording, ops)
        after[copies] *= link_time_factors(ops, move.a.link, move.link, estimate)[copies]
    peers = np.isin(ops.work, (Work.COLLECTIVE, Work.PEER_COPY))
    after[peers] = length[peers] / (move.peers or 1.0)
    return after


def roofs_there(recording: Recording, move: DevicePair) -> Ints:
    """The BoundBy that bounds each operation of the trace's device on B; UNKNOWN where it is so on A."""
    at_peak, at_bandwidth = times_at_roofs(recording, move)
    there = np.where(at_peak >= at_bandwidth, BoundBy.COMPUTE, BoundBy.MEMORY)
    return np.where(recording.kernel_bounds.bound_by == BoundBy.UNKNOWN, BoundBy.UNKNOWN, there)


def times_at_roofs(recording: Recording, move: DevicePair | None) -> tuple[Floats, Floats]:
    """Time at the arithmetic and at the bandwidth of B, or of A where nothing moves, over the time taken on A.

    0 where the roof is not known.
    """
    roofs = recording.kernel_bounds
    compute = roofs.bound_by == BoundBy.COMPUTE
    at_peak = np.where(compute, roofs.reached, roofs.other)
    at_bandwidth = np.where(compute, roofs.other, roofs.reached)
    if move is None:
        return at_peak, at_bandwidth
    return at_peak / _ratios(recording, move, Estimate.EXPECTED)[0], at_bandwidth / move.bandwidth


def _kernel_times(recording: Recording, move: DevicePair, estimate: Estimate, kernels: Bools, length: Floats) -> Floats:
    ops, roofs = recording.trace.device_ops, recording.kernel_bounds
    _, least = _ratios(recording, move, estimate)
    fill = _fill_ratio(ops.blocks, move)
    known = roofs.bound_by != BoundBy.UNKNOWN
    at_peak, at_bandwidth = times_at_roofs(recording, move)
    by_roof = np.maximum(at_peak, at_bandwidth) / np.where(known, np.maximum(roofs.reached, 1e-9), 1.0)
    by_kind = np.where(
        ops.work == Work.CONTRACTION, 1 / least, np.where(ops.work == Work.STREAMING, 1 / move.bandwidth, 1 / least)
    )
    # The share of the device that the grid can use is in the recorded time already; only what changes of it counts.
    factor = np.where(known, by_roof, by_kind) / fill
    error = {Estimate.EXPECTED: 1.0, Estimate.LOW: 1 + move.error, Estimate.HIGH: 1 / (1 + move.error)}[estimate]
    after = np.maximum(length * factor * error, np.minimum(length, SHORTEST_KERNEL_NS))
    # A faster device is no sooner over with what is over at once; on a slower one it may take longer by what it does.
    short = (
        np.maximum(length, SHORTEST_KERNEL_NS + (length - SHORTEST_KERNEL_NS) * factor)
        if estimate is Estimate.LOW
        else length
    )
    after = np.where(length < TOO_SHORT_NS, short, after)
    return np.asarray(after[kernels], np.float64)


def _ratios(recording: Recording, move: DevicePair, estimate: Estimate) -> tuple[Floats, Floats]:
    """For each operation B's arithmetic rate over A's, and the ratio to use where its roof is not known.

    Of a product whose roof is not known the arithmetic is expected to bound it; of a kernel that nothing is known of,
    the smaller of the two ratios, as it is in the worst case of both, and the larger in the best. Where the name does
    not tell the unit, the ordinary ones are reckoned with too.
    """
    ops = recording.trace.device_ops
    arithmetic, ordinary = np.ones(len(ops)), np.ones(len(ops))
    on_ordinary = speed_ratio(move.a, move.b, VECTOR_FP32)
    for name, rows in rows_by_name(ops.name):
        precision = with_operand_type(precision_of(recording.trace.names[name]), operand_type(recording, int(rows[0])))
        ratio = speed_ratio(move.a, move.b, precision) or on_ordinary or move.bandwidth
        told = precision is not None and precision.unit in KERNEL_NAME_UNITS
        arithmetic[rows], ordinary[rows] = ratio, ratio if told else on_ordinary or ratio
    lower = np.minimum(np.minimum(arithmetic, ordinary), move.bandwidth)
    upper = np.maximum(np.maximum(arithmetic, ordinary), move.bandwidth)
    expected = np.where(ops.work == Work.CONTRACTION, arithmetic, lower)
    return arithmetic, {Estimate.EXPECTED: expected, Estimate.LOW: lower, Estimate.HIGH: upper}[estimate]


def rows_by_name(names: Ints) -> "list[tuple[int, Ints]]":
    """Each name with the rows that have it."""
    order = np.argsort(names, kind="stable")
    distinct, first = np.unique(names[order], return_index=True)
    return list(zip(distinct.tolist(), np.split(order, first[1:]), strict=True)) if len(names) else []


def operand_type(recording: Recording, op: int) -> str:
    """The type of the first tensor that the operator of this operation is given; empty where that is not known."""
    trace = recording.trace
    called, operator = trace.calling_operators
    ops = trace.device_ops
    if not ops.launched[op] or not called[ops.call[op]]:
        return ""
    operands = operands_of(trace.signatures[trace.events.signature[operator[ops.call[op]]]])
    if operands is None:
        return ""
    return next((kind for kind, dims in zip(operands.types, operands.dims, strict=False) if dims), "")


def _fill_ratio(blocks: Ints, move: DevicePair) -> Floats:
    """Share of B's multiprocessors that a grid can use / share of A's; at most 1: what fills neither gains nothing."""
    if not move.a.multiprocessors or not move.b.multiprocessors:
        return np.ones(len(blocks))
    shares = [np.minimum(blocks / device.multiprocessors, 1.0) for device in (move.a, move.b)]  # type: ignore[operator]
    return np.where(blocks > 0, shares[1] / np.maximum(shares[0], 1e-9), 1.0)


def link_bound_copies(recording: Recording, ops: DeviceOps) -> Bools:
    """Copies that the link bounds: large ones, and not those from pageable memory, which the host stages."""
    trace = recording.trace
    staged = name_matches(trace.names, ops.name, lambda name: "Pageable" in name)
    found: Bools = np.isin(ops.work, (Work.UPLOAD, Work.DOWNLOAD)) & (ops.bytes >= LARGE_COPY_BYTES) & ~staged
    return found


def link_time_factors(ops: DeviceOps, now: float, ratio: float, estimate: Estimate) -> Floats:
    """Time over a link `ratio` times as fast as now's (`now`, usable GB/s) / time now, for copies that go by it.

    The link takes a copy's bytes at its rate; what a copy takes beyond that, which something else holds up, stays. That
    something else may be the link itself, in a worse state than is known: the more extreme case takes it for that.
    """
    part = np.minimum(ops.bytes / now / np.maximum(ops.end - ops.start, 1), 1.0)
    if estimate is (Estimate.HIGH if ratio > 1 else Estimate.LOW):
        part = np.ones(len(ops))
    return np.asarray(1 - part + part / ratio, np.float64)


def vendor_assumptions(move: DevicePair) -> tuple[str, ...]:
    """What is not known of a move to another maker's devices."""
    if move.a.maker == move.b.maker:
        return ()
    return (
        f"{move.b.maker}'s libraries bring kernels of their own: how near each comes to its roof there is not known, "
        "so the interval is wide; measure there before you buy",
    )


def collective_assumptions(recording: Recording) -> tuple[str, ...]:
    """What is assumed of collectives, where there are some."""
    if not (recording.trace.device_ops.work == Work.COLLECTIVE).any():
        return ()
    return ("all ranks move to such devices alike; what collectives wait for each other is scaled as they are",)


def precision_label(precision: Precision | None) -> str:
    """A precision in words."""
    if precision is None or precision.dtype is None:
        return "an unknown type"
    return f"{precision.dtype} on {'tensor cores' if precision.unit == 'tensor' else 'ordinary units'}"
