"""Measures of how well kernels use the device's arithmetic and bandwidth: limits, precisions, alignment.

Contractions are matrix multiplications, convolutions and attention. Matrix units are the units of a device for matrix
products (NVIDIA: tensor cores); the others are vector units. A roof is the peak rate of the device that limits a
kernel.
"""

import numpy as np

from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.arrays import heaviest_value
from tb_bottleneck.base.measure import Measure, Missing, text_measure
from tb_bottleneck.base.units import share_text
from tb_bottleneck.bottlenecks.compute.kernels import longest_call_of
from tb_bottleneck.knowledge.catalogue import Precision, misaligned, precision_of
from tb_bottleneck.measures.trace.window_rows import device_work, window_share
from tb_bottleneck.roofline.device_peaks import has_matrix_units, has_tf32, peaks_of
from tb_bottleneck.roofline.kernel_bounds import MIN_SIGNATURES, BoundBy
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, DeviceOps, Work
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.table import Bools, Floats, Ints

_NO_DEVICE = Missing("the work ran on the CPU: there are no kernels")
# TF32 is worth its loss of precision from this ratio of the rates on; devices have 1 or at least 2.
FASTER = 1.1
MOSTLY = 0.5
# Types with a smaller share of the kernels' time are left out of lists of types.
WORTH_LISTING = 0.01

MOST = 0.5
"""Most contractions run on matrix units if these contractions take more than this share of all contractions' time."""


def roofs_known(recording: Recording) -> Measure | Missing:
    """Share of the kernels' time in kernels whose limit (arithmetic or bandwidth) is known from the shapes of tensors.
    The limits of other kernels are inferred from their names."""
    inside, length = _kernel_time(recording)
    if not length.sum():
        return _NO_DEVICE
    known = recording.kernel_bounds.bound_by[inside] != BoundBy.UNKNOWN
    return Measure(float(length[known].sum() / length.sum()), "share", "kernel time", len(length))


def shapes_recorded(recording: Recording) -> Measure | Missing:
    """1 if the shapes of operators' inputs were recorded (count); otherwise missing."""
    if len(recording.trace.signatures) < MIN_SIGNATURES:
        return Missing("no shapes were recorded")
    return Measure(1.0, "count", "recording")


def reachable_peak(recording: Recording) -> Measure | Missing:
    """Largest share of the data sheet's peak that matrix units can reach; missing if most contractions do not use
    matrix units, or if the whole peak can be reached."""
    peaks, ops = peaks_of(recording.trace), _products(recording)
    length = (ops.end - ops.start).astype(np.float64)
    names, spent = _sum_by_name(ops.name, length)
    on_units = sum(
        time
        for name, time in zip(names, spent, strict=True)
        if _on_matrix_units(precision_of(recording.trace.names[name]))
    )
    if peaks is None or peaks.achievable == 1.0 or on_units <= MOST * length.sum():
        return Missing("the data sheet's peak is the limit")
    return Measure(peaks.achievable, "share", "device", len(ops))


def compute_reached(recording: Recording) -> Measure | Missing:
    """Efficiency of the kernels limited by arithmetic: reached rate / reachable rate of the device, as the mean
    weighted by time (share)."""
    return _reached(recording, BoundBy.COMPUTE)


def memory_reached(recording: Recording) -> Measure | Missing:
    """Efficiency of the kernels limited by bandwidth: reached bandwidth / bandwidth of the device, as the mean weighted
    by time (share)."""
    return _reached(recording, BoundBy.MEMORY)


def full_precision_products(recording: Recording) -> Measure | Missing:
    """Share of the window in which contractions run in fp32 on vector units.

    Missing if the device is not known or has no matrix units. Zero if the contractions on matrix units take at least as
    long as those in fp32 on vector units.
    """
    if not has_matrix_units(recording.trace):
        return Missing("it is not known whether the device has faster units for matrix products")
    ops, plain = _products(recording), plain_fp32_kernels(recording)
    matrix = name_matches(recording.trace.names, ops.name, lambda name: _on_matrix_units(precision_of(name)))
    if (ops.end - ops.start)[matrix].sum() >= (plain.end - plain.start).sum():
        return Measure(0.0, "share", "window", 0)
    return window_share(recording, plain.start, plain.end)


def fp32_products(recording: Recording) -> Measure | Missing:
    """Share of the contractions' time that is in fp32 or tf32, if this share is more than MOSTLY.

    Otherwise missing, because the activations already have 16 bits, or their type is not known.
    """
    ops = _products(recording)
    length = ops.end - ops.start
    wide = name_matches(recording.trace.names, ops.name, lambda name: _in_32_bits(precision_of(name)))
    if not length.sum() or length[wide].sum() <= MOSTLY * length.sum():
        return Missing("most products are not known to be in 32 bits")
    return Measure(float(length[wide].sum() / length.sum()), "share", "products", int(wide.sum()))


def tf32_available(recording: Recording) -> Measure | Missing:
    """1 if the device multiplies faster in TF32 than in fp32; 0 if the device has no TF32 or TF32 is not faster
    (count)."""
    if not has_matrix_units(recording.trace):
        return Missing("it is not known whether the device has faster units for matrix products")
    peaks = peaks_of(recording.trace)
    in_tf32, as_fp32 = (peaks.tensor.get("tf32"), peaks.vector) if peaks is not None else (None, None)
    faster = in_tf32 is None or as_fp32 is None or in_tf32 >= FASTER * as_fp32
    return Measure(float(has_tf32(recording.trace) and faster), "count", "device")


def half_type(recording: Recording) -> Measure | Missing:
    """The half-precision type to use, as text: bfloat16 if the device is known to support it, else float16."""
    peaks = peaks_of(recording.trace)
    return text_measure("bfloat16" if peaks is not None and peaks.tensor.get("bf16") else "float16")


def without_bf16(recording: Recording) -> Measure | Missing:
    """The text float16 if the device is not known to support bfloat16, otherwise missing."""
    half = half_type(recording)
    is_narrow = isinstance(half, Measure) and half.text != "bfloat16"
    return half if is_narrow else Missing("bfloat16 needs no gradient scaler")


def types_multiplied(recording: Recording) -> Measure | Missing:
    """The types and units of contractions, each with its share of the contractions' time, as text: `fp32 (vector): 82
    %`."""
    ops = _products(recording)
    length = ops.end - ops.start
    if not length.sum():
        return Missing("no matrix product ran on the device")
    by_type: dict[str, float] = {}
    for name, share in zip(*_sum_by_name(ops.name, length / length.sum()), strict=True):
        label = _label(precision_of(recording.trace.names[name]))
        by_type[label] = by_type.get(label, 0.0) + share
    listed = sorted(((share, label) for label, share in by_type.items() if share >= WORTH_LISTING), reverse=True)
    return text_measure(", ".join(f"{label}: {share_text(share)}" for share, label in listed), len(ops))


def reached_by_type(recording: Recording) -> Measure | Missing:
    """Efficiency of contractions by type, as text: reached rate / reachable rate of the device, such as `bf16 (tensor):
    61 %`."""
    inside, length = _kernel_time(recording)
    ops = recording.trace.device_ops.take(inside)
    bound_by, reached = recording.kernel_bounds.bound_by[inside], recording.kernel_bounds.reached[inside]
    products = (bound_by == BoundBy.COMPUTE) & (ops.work == Work.CONTRACTION)
    if not length[products].sum():
        return Missing("no kernel's work is known from shapes; record_shapes=True records them")
    time: dict[str, float] = {}
    time_at_peak: dict[str, float] = {}
    names, taken = _sum_by_name(ops.name[products], length[products].astype(np.float64))
    _, at_peak = _sum_by_name(ops.name[products], length[products] * reached[products])
    for name, ns, ns_at_peak in zip(names, taken, at_peak, strict=True):
        label = _label(precision_of(recording.trace.names[name]))
        time[label], time_at_peak[label] = time.get(label, 0.0) + ns, time_at_peak.get(label, 0.0) + ns_at_peak
    by_time = sorted(((ns, label) for label, ns in time.items()), reverse=True)
    listed = [(ns, label) for ns, label in by_time if ns > WORTH_LISTING * sum(taken)]
    text = ", ".join(f"{label}: {share_text(time_at_peak[label] / ns)}" for ns, label in listed)
    return text_measure(text, int(products.sum()))


def peak_source(recording: Recording) -> Measure | Missing:
    """The source of the device's peaks, as text: calibration, data sheet or device properties."""
    peaks = peaks_of(recording.trace)
    return Missing("the device's peaks are not known") if peaks is None else text_measure(peaks.basis)


def misaligned_products(recording: Recording) -> Measure | Missing:
    """Share of the window in kernels that the library chose because a size or an address is not a multiple of eight
    elements."""
    if not recording.on_device:
        return _NO_DEVICE
    ops = misaligned_kernels(recording)
    return window_share(recording, ops.start, ops.end)


def misaligned_kernel(recording: Recording) -> Measure | Missing:
    """The name of the kernel with the most time among those of `misaligned_products`, as text."""
    ops = misaligned_kernels(recording)
    if not len(ops):
        return Missing("no misaligned kernel ran")
    name = heaviest_value(ops.name, ops.end - ops.start)
    return longest_call_of(recording, name, ops.take(ops.name == name))


def plain_fp32_kernels(recording: Recording) -> DeviceOps:
    """Returns the contractions of the window that run in fp32 on vector units."""
    ops = _products(recording)
    return ops.take(name_matches(recording.trace.names, ops.name, lambda name: _is_plain_fp32(precision_of(name))))


def misaligned_kernels(recording: Recording) -> DeviceOps:
    """Returns the contractions of the window in kernels for sizes or addresses that are not a multiple of eight
    elements."""
    ops = _products(recording)
    return ops.take(name_matches(recording.trace.names, ops.name, misaligned))


def _products(recording: Recording) -> DeviceOps:
    """Returns the contractions of the window."""
    return device_work(recording, Work.CONTRACTION)


def _sum_by_name(names: Ints, values: Floats) -> tuple[list[int], list[float]]:
    """Returns the distinct elements of `names`, and for each of them the sum of its `values`."""
    distinct, which = np.unique(names, return_inverse=True)
    return distinct.tolist(), np.bincount(which, weights=values).tolist()


def _label(precision: Precision | None) -> str:
    """Returns the type and unit of a precision as text, such as "bf16 (tensor)"."""
    if precision is None or precision.dtype is None:
        return "unknown type"
    return f"{precision.dtype} ({precision.unit})"


def _is_plain_fp32(precision: Precision | None) -> bool:
    return precision is not None and precision.unit == "vector" and precision.dtype == "fp32"


def _in_32_bits(precision: Precision | None) -> bool:
    return precision is not None and precision.dtype in ("fp32", "tf32")


def _on_matrix_units(precision: Precision | None) -> bool:
    return precision is not None and precision.unit == "tensor"


def _kernel_time(recording: Recording) -> tuple[Bools, Ints]:
    """Returns a mask of the device operations, True for the compute kernels of the window, and the durations of these
    kernels in ns."""
    ops, steps = recording.trace.device_ops, recording.steps
    kernels = np.isin(ops.work, COMPUTE_KERNELS)
    inside: Bools = kernels & (ops.end > steps.begin) & (ops.start < steps.end)
    return inside, (ops.end - ops.start)[inside]


def _reached(recording: Recording, limit: BoundBy) -> Measure | Missing:
    """Returns the mean efficiency (reached rate / reachable rate, weighted by time) of the kernels of the window that
    `limit` limits."""
    inside, length = _kernel_time(recording)
    rows = recording.kernel_bounds.bound_by[inside] == limit
    if not length[rows].sum():
        return Missing("no kernel's work is known from shapes; record_shapes=True records them")
    reached = recording.kernel_bounds.reached[inside][rows]
    return Measure(float((reached * length[rows]).sum() / length[rows].sum()), "share", "roof", int(rows.sum()))
