"""The roofline chart: the rates that operators reach, compared with the device's peaks. Needs recorded shapes.

The number of floating-point operations of a matrix multiplication is computed from the shapes. A pointwise operator, a
reduction or a normalisation counts as one operation per element of its largest operand. The exact number is not known,
but it hardly matters, because bandwidth limits these operators.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from tb_bottleneck.attribution.cpu_attribution import DISPATCH_SIZED_NS
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.units import NS_PER_S, share_text
from tb_bottleneck.knowledge.catalogue import Precision, precision_of
from tb_bottleneck.knowledge.gpus import GIGA, TERA
from tb_bottleneck.roofline.bytes_moved import bytes_moved, list_itemsize_in
from tb_bottleneck.roofline.device_peaks import Peaks, cpu_peaks_of, peaks_of
from tb_bottleneck.roofline.matmul import flops
from tb_bottleneck.roofline.operator_args import IMPLAUSIBLE_FROM, first_tensor_type, with_operand_type
from tb_bottleneck.schema import evidence_pb2 as pb
from tb_bottleneck.trace.operands import Shape, operands_of

MAX_POINTS = 200
MAX_POINT_NAME_LENGTH, MAX_SHAPES_LENGTH = 200, 200
_NO_SHAPES = "The shapes of the operators' inputs were not recorded, so their work is not known."
_NO_CPU_PEAKS = (
    "The work ran on the CPU, and its peaks are not in the recording. Measure them once on that machine; recordings of "
    "the monitor contain them from then on."
)
_CALIBRATE_CPU = "CUDA_VISIBLE_DEVICES=-1 tb-bottleneck doctor"
_ON_VECTOR_UNITS = Precision("vector", "fp32")
_NO_PEAKS = (
    "The peaks of this device are not known. Measure them once, then record again with the monitor or as_metadata()."
)
_NO_WORK = "No operator in the window has work that is counted: products, attention, pointwise operators, reductions."
_CALIBRATE = "tb-bottleneck doctor"
_RECORD_SHAPES = "with profile(record_shapes=True, ...) as prof:"


@dataclass(frozen=True)
class _Use:
    """One point of the chart: all calls of one operator with the same shapes that launched the same kernel."""

    operator: int  # row of names
    signature: int  # row of signatures
    kernel: int | None  # row of names: the longest kernel that a call launched; None on the CPU
    time: int  # ns
    calls: int


def roofline_of(recording: Recording, window_ns: float) -> pb.Roofline:
    """Returns the roofs and the points of the chart. If there can be no chart, the message has the problem instead.

    `window_ns` is the length in ns of the window, which has the steps that the report is about.
    """
    trace = recording.trace
    peaks = peaks_of(trace) if recording.on_device else cpu_peaks_of(trace)
    if peaks is None and not recording.on_device:
        return pb.Roofline(problem=_NO_CPU_PEAKS, fix=_CALIBRATE_CPU)
    if peaks is None:
        return pb.Roofline(problem=_NO_PEAKS, fix=_CALIBRATE)
    if len(trace.signatures) < 2:  # the first signature is a placeholder for "none"
        return pb.Roofline(problem=_NO_SHAPES, fix=_RECORD_SHAPES)
    points = [point for use in _uses_of(recording) if (point := _point(recording, peaks, use, window_ns))]
    if not points:
        return pb.Roofline(problem=_NO_WORK)
    points.sort(key=lambda point: -point.total_ns)
    shown = points[:MAX_POINTS]
    return pb.Roofline(
        bandwidth=peaks.bandwidth * GIGA,
        basis=_basis(peaks),
        roofs=_roofs(peaks, {point.precision for point in shown}),
        points=shown,
    )


def _basis(peaks: Peaks) -> str:
    """Returns a text that names the source of the roofs, and the share of the source's rates that is used as roof.

    Efficiency figures in reports use the full rates of the data sheet.
    """
    if peaks.achievable == 1.0:
        return peaks.basis
    return f"{peaks.basis}, matrix units at {share_text(peaks.achievable)} of it"


def _roofs(peaks: Peaks, used: set[str]) -> list[pb.Roof]:
    """Returns the roofs for arithmetic of the precisions in `used`, the highest first."""
    rates = {f"{kind} tensor": rate for kind, rate in peaks.tensor.items()}
    if peaks.vector is not None:
        rates["fp32 vector"] = peaks.vector
    roofs = [pb.Roof(precision=name, flops_per_s=rate * TERA) for name, rate in rates.items() if name in used]
    return sorted(roofs, key=lambda roof: -roof.flops_per_s)


def _uses_of(recording: Recording) -> Iterator[_Use]:
    return _kernel_uses(recording) if recording.on_device else _cpu_uses(recording)


def _cpu_uses(recording: Recording) -> Iterator[_Use]:
    """Yields the operators of the main thread that do work themselves, grouped by name and signature (inputs)."""
    operators, events = recording.main_operators, recording.trace.events
    works = (operators.own >= DISPATCH_SIZED_NS) & recording.in_window(events.start[operators.rows])
    rows, own = operators.rows[works], operators.own[works]
    keys = np.stack([events.name[rows], events.signature[rows]], axis=1)
    distinct, which, calls = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    time = np.bincount(which.reshape(-1), weights=own, minlength=len(distinct)).astype(np.int64)
    for key, ns, count in zip(distinct.tolist(), time.tolist(), calls.tolist(), strict=True):
        if key[1]:
            yield _Use(key[0], key[1], None, ns, count)


def _kernel_uses(recording: Recording) -> Iterator[_Use]:
    """Yields the operators that launched kernels in the window, grouped by name, signature (inputs) and kernel."""
    trace, ops, steps = recording.trace, recording.trace.device_ops, recording.steps
    has_operator, operator = trace.calling_operators
    inside = (ops.start >= steps.begin) & (ops.start < steps.end)
    rows = np.flatnonzero(ops.launched & has_operator[ops.call] & inside) if len(trace.calls) else np.empty(0, np.intp)
    if not len(rows):
        return
    length = ops.end[rows] - ops.start[rows]
    operators, group = np.unique(operator[ops.call[rows]], return_inverse=True)
    longest = np.full(len(operators), -1)
    by_length = np.argsort(length, kind="stable")
    longest[group[by_length]] = rows[by_length]
    device_time = np.bincount(group, weights=length).astype(np.int64)
    keys = np.stack([trace.events.name[operators], trace.events.signature[operators], ops.name[longest]], axis=1)
    distinct, which, calls = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    time = np.bincount(which.reshape(-1), weights=device_time).astype(np.int64)
    for key, ns, count in zip(distinct.tolist(), time.tolist(), calls.tolist(), strict=True):
        if key[1]:
            yield _Use(key[0], key[1], key[2], ns, count)


def _elements(dims: Shape) -> int:
    """Returns the number of elements of the tensor with the shape `dims`, or of all tensors in a list; 0 for a
    scalar."""
    lists = [size for size in dims if isinstance(size, tuple)]
    if lists:
        return sum(_elements(each) for each in lists)
    return prod(size for size in dims if isinstance(size, int)) if dims else 0


def _point(recording: Recording, peaks: Peaks, use: _Use, window_ns: float) -> pb.RoofPoint | None:
    """Returns the point of `use` in the chart; None if its work, bytes or precision are unknown or implausible.

    `peaks` are the peak rates of the device. `window_ns` is the length of the window in ns.
    """
    trace = recording.trace
    operands = operands_of(trace.signatures[use.signature])
    if operands is None or use.time <= 0:
        return None
    name, kernel = trace.names[use.operator], "" if use.kernel is None else trace.names[use.kernel]
    work = flops(name, operands.dims, operands.concrete)
    moved = bytes_moved(name, operands.dims, operands.types, operands.concrete, list_itemsize_in(kernel))
    precision = _precision(use, kernel, first_tensor_type(operands))
    if work is None and moved is not None and name.startswith("aten::"):
        work = max((_elements(dims) for dims in operands.dims), default=0)
        precision = _ON_VECTOR_UNITS
    peak = peaks.of(precision) if precision is not None else None
    if not work or not moved or precision is None or peak is None:
        return None
    rate = work * use.calls / use.time * NS_PER_S
    if rate >= IMPLAUSIBLE_FROM * peak * TERA:
        return None
    return pb.RoofPoint(
        name=name[:MAX_POINT_NAME_LENGTH],
        shapes=", ".join(str(list(dims)) for dims in operands.dims if dims)[:MAX_SHAPES_LENGTH],
        precision=_label(precision),
        intensity=work / moved,
        flops_per_s=rate,
        total_ns=float(use.time),
        share=min(use.time / window_ns, 1.0),  # kernels of several streams overlap
        calls=use.calls,
    )


def _precision(use: _Use, kernel: str, operand_type: str) -> Precision | None:
    """Returns the precision of `use`, from the name of its kernel and the type of its operands; None if unknown.

    On the CPU, only fp32 operands have a precision, because calibration measures no other rate.
    """
    if use.kernel is None:
        return _ON_VECTOR_UNITS if operand_type == "float" else None
    return with_operand_type(precision_of(kernel), operand_type)


def _label(precision: Precision) -> str:
    """Returns the name of the roof for `precision`. All types on vector units have the fp32 roof."""
    if precision.unit == "vector":
        return "fp32 vector"
    return f"{'fp32_matrix' if precision.dtype == 'fp32' else precision.dtype} tensor"
