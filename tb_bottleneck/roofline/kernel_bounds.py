"""Bounds of kernels by the roofline model, from the shapes of the operators that launched them.

An operator has two minimum times: the time to compute its floating-point operations at the device's peak rate, and the
time to move its bytes at the device's bandwidth. The longer one is the bound: it says whether arithmetic or bandwidth
limits the operator. Divided by the time that the operator's kernels take, it is the share of the roof (the peak rate or
the bandwidth) that the kernels reach. All kernels of an operator have the same bound. The bound is unknown if shapes,
device or type are unknown, or if the minimum time is so long that these kernels cannot belong to the operator. If the
trace has hardware counters that show a limit, the counters decide instead.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from tb_bottleneck.base.arrays import distinct_rows
from tb_bottleneck.base.units import NS_PER_S
from tb_bottleneck.knowledge.catalogue import precision_of
from tb_bottleneck.knowledge.gpus import GIGA, TERA
from tb_bottleneck.roofline.bytes_moved import bytes_moved, list_itemsize_in
from tb_bottleneck.roofline.device_peaks import Peaks, peaks_of
from tb_bottleneck.roofline.hardware_counters import Signal, use_by_kernel
from tb_bottleneck.roofline.matmul import flops
from tb_bottleneck.roofline.operator_args import IMPLAUSIBLE_FROM, first_tensor_type, with_operand_type
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, DeviceOps, Work
from tb_bottleneck.trace.operands import operands_of
from tb_bottleneck.trace.table import Bools, Floats, Ints, Table, column
from tb_bottleneck.trace.trace import Trace

# Shorter kernels are limited by their start and end, not by arithmetic or bandwidth: the latency of a launch alone is
# 4.5 to 8 us (measured on seven public traces, V100 to H100).
TOO_SHORT_NS = 5_000
# A grid with fewer blocks than this share of the multiprocessors leaves most of the device's arithmetic and bandwidth
# unused (torch-tb-profiler's estimated SM efficiency is the same ratio, capped at 1).
FILLED_SHARE = 0.5


def underfilled(ops: DeviceOps, multiprocessors: int | None, sm_active: Floats | None = None) -> Bools:
    """Returns a mask of `ops`: True for operations that are too short or have too few thread blocks to fill the device.

    `multiprocessors` is the number of multiprocessors of the device, or None if unknown. `sm_active` has for each
    operation the measured share of multiprocessors with work, or NaN; where it is known, it decides instead of the
    number of blocks.
    """
    is_short = ops.end - ops.start < TOO_SHORT_NS
    few = np.zeros(len(ops), np.bool_)
    if multiprocessors is not None:
        few = (ops.blocks > 0) & (ops.blocks < FILLED_SHARE * multiprocessors)
    if sm_active is not None:
        few = np.where(np.isfinite(sm_active), sm_active < FILLED_SHARE, few)
    return np.asarray(is_short | few)


MEASURED_BOUND = 0.60
"""If a kernel uses at least this share of the peak bandwidth, bandwidth limits the kernel. If it uses at least this
share of the tensor cores' cycles, arithmetic limits it. (Nsight Compute, speed of light: above 60 % counts as a high
throughput of the unit.)"""
MIN_SIGNATURES = 2  # the first signature is a placeholder for "none"


class BoundBy(IntEnum):
    """The resource that limits the speed of a kernel."""

    UNKNOWN = 0
    COMPUTE = 1
    MEMORY = 2


@dataclass(frozen=True, eq=False)
class KernelBounds(Table):
    """What limits each operation of the trace's device: one row per device operation."""

    bound_by: Ints = column("BoundBy", "what bounds the operation")
    reached: Floats = column("share", "time at that roof / time taken; 0 if the bound is unknown, may exceed 1")
    other: Floats = column("share", "time at the other roof / time taken; 0 if the bound is unknown")
    small: Bools = column("flag", "a kernel that is too small to fill the device; this precedes its bound")


def kernel_bounds_of(trace: Trace) -> KernelBounds:
    """Returns what limits each operation in `trace.device_ops`. Hardware counters decide if they show a limit,
    otherwise the recorded shapes of the launching operator."""
    bounds = _from_shapes(trace)
    bandwidth = use_by_kernel(trace, Signal.BANDWIDTH)
    if bandwidth is None:
        return bounds
    tensor = use_by_kernel(trace, Signal.TENSOR_ACTIVE)
    works = np.isin(trace.device_ops.work, COMPUTE_KERNELS)
    arithmetic = np.zeros(len(works)) if tensor is None else np.nan_to_num(tensor)
    memory = works & (np.nan_to_num(bandwidth) >= np.maximum(MEASURED_BOUND, arithmetic))
    compute = works & ~memory & (arithmetic >= MEASURED_BOUND)
    bandwidth = np.nan_to_num(bandwidth)
    return KernelBounds(
        np.select((memory, compute), (BoundBy.MEMORY, BoundBy.COMPUTE), bounds.bound_by),
        np.select((memory, compute), (bandwidth, arithmetic), bounds.reached),
        np.select((memory, compute), (arithmetic, bandwidth), bounds.other),
        bounds.small,
    )


def _from_shapes(trace: Trace) -> KernelBounds:
    ops = trace.device_ops
    bound_by, reached, other = np.zeros(len(ops), np.int64), np.zeros(len(ops)), np.zeros(len(ops))
    small = underfilled(ops, trace.multiprocessors, use_by_kernel(trace, Signal.SM_ACTIVE))
    small &= np.isin(ops.work, COMPUTE_KERNELS)
    peaks = peaks_of(trace)
    if peaks is None or not len(trace.calls) or len(trace.signatures) < MIN_SIGNATURES:
        return KernelBounds(bound_by, reached, other, small)
    has_operator, operator = trace.calling_operators
    works = np.isin(ops.work, COMPUTE_KERNELS)
    rows = np.flatnonzero(ops.launched & works & has_operator[ops.call])
    if not len(rows):
        return KernelBounds(bound_by, reached, other, small)
    length = ops.end[rows] - ops.start[rows]
    operators, group = np.unique(operator[ops.call[rows]], return_inverse=True)
    taken = np.bincount(group, weights=length)
    longest = np.full(len(operators), -1)
    by_length = np.argsort(length, kind="stable")
    longest[group[by_length]] = rows[by_length]
    keys = (trace.events.name[operators], trace.events.signature[operators], ops.name[longest], ops.work[longest])
    first, which = distinct_rows(*keys)
    distinct = zip(*(key[first].tolist() for key in keys), strict=True)
    times = np.array([_times(trace, peaks, *key) for key in distinct])[which]
    at_roof = times.max(axis=1)
    is_known = np.isfinite(at_roof) & (at_roof > 0) & (at_roof < IMPLAUSIBLE_FROM * taken)
    nearer = np.where(times[:, 0] >= times[:, 1], BoundBy.COMPUTE, BoundBy.MEMORY)
    bound_by[rows] = np.where(is_known, nearer, BoundBy.UNKNOWN)[group]
    reached[rows] = np.where(is_known, at_roof / np.maximum(taken, 1), 0.0)[group]
    other[rows] = np.where(is_known, times.min(axis=1) / np.maximum(taken, 1), 0.0)[group]
    return KernelBounds(bound_by, reached, other, small)


def _times(trace: Trace, peaks: Peaks, operator: int, signature: int, kernel: int, work: int) -> tuple[float, float]:
    """Returns two minimum times in ns of one call of an operator: the time to compute its floating-point operations at
    the device's peak rate, and the time to move its bytes at the device's bandwidth. (NaN, NaN) if unknown.

    `operator` and `kernel` are rows of the trace's names, `signature` is a row of the trace's signatures, and `work` is
    a value of Work.
    """
    unknown = (float("nan"), float("nan"))
    operands = operands_of(trace.signatures[signature]) if signature else None
    if operands is None:
        return unknown
    name, kernel_name = trace.names[operator], trace.names[kernel]
    moved = bytes_moved(name, operands.dims, operands.types, operands.concrete, list_itemsize_in(kernel_name))
    if moved is None:
        return unknown
    at_bandwidth = moved / (peaks.bandwidth * GIGA) * NS_PER_S
    if work == Work.STREAMING:
        return 0.0, at_bandwidth
    count = flops(name, operands.dims, operands.concrete)
    precision = with_operand_type(precision_of(kernel_name), first_tensor_type(operands))
    peak = peaks.of(precision) if precision is not None else None
    if count is None or peak is None:
        return unknown
    return count / (peak * TERA) * NS_PER_S, at_bandwidth
