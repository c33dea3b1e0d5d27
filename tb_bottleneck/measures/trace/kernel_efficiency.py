"""Measures of how well the device's arithmetic and bandwidth are used: roofs, precisions, alignment."""

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.knowledge.precisions import Precision, misaligned, precision_of
from tb_bottleneck.measure import Measure, Missing, text_measure
from tb_bottleneck.measures.trace.kernels import longest_call_of
from tb_bottleneck.measures.trace.window import with_example
from tb_bottleneck.roofline.device_peaks import has_matrix_units, has_tf32, peaks_of
from tb_bottleneck.roofline.kernel_bounds import BoundBy
from tb_bottleneck.trace.device_ops import COMPUTE_KERNELS, DeviceOps, Work
from tb_bottleneck.trace.table import Bools, Floats, Ints
from tb_bottleneck.units import share_text

_NO_DEVICE = Missing("the work ran on the CPU: there are no kernels")
# Types that take less of the kernels' time than this are left out where types are listed.
WORTH_LISTING = 0.01


def roofs_known(recording: Recording) -> Measure | Missing:
    """Share of the kernels' time whose roof is known from shapes; the rest goes by kernel names."""
    inside, length = _kernel_time(recording)
    if not length.sum():
        return _NO_DEVICE
    known = recording.kernel_bounds.bound_by[inside] != BoundBy.UNKNOWN
    return Measure(float(length[known].sum() / length.sum()), "share", "kernel time", len(length))


def compute_reached(recording: Recording) -> Measure | Missing:
    """How near the kernels that arithmetic bounds come to what the device can reach, weighted by time."""
    return _reached(recording, BoundBy.COMPUTE)


def memory_reached(recording: Recording) -> Measure | Missing:
    """How near the kernels that bandwidth bounds come to the device's bandwidth, weighted by time."""
    return _reached(recording, BoundBy.MEMORY)


def full_precision_products(recording: Recording) -> Measure | Missing:
    """Share of the window in which matrix products and convolutions run in fp32 on ordinary arithmetic units.

    Missing where the device has no matrix units that its kernels could use, or is not known; zero where half of the
    products or more run on matrix units already.
    """
    if not has_matrix_units(recording.trace):
        return Missing("whether the device has faster units for matrix products is not known")
    ops = _products(recording)
    length = ops.end - ops.start
    told = {name: precision_of(recording.trace.names[name]) for name in np.unique(ops.name).tolist()}
    vector = np.array([_is_plain_fp32(told[name]) for name in ops.name.tolist()], np.bool_)
    matrix = np.array([(p := told[name]) is not None and p.unit == "tensor" for name in ops.name.tolist()], np.bool_)
    if length[matrix].sum() >= length[vector].sum():
        return Measure(0.0, "share", "window", 0)
    plain = ops.take(vector)
    return with_example(
        float(length[vector].sum()) / recording.account.window, "share", "window", plain.start, plain.end
    )


def tf32_available(recording: Recording) -> Measure | Missing:
    """1 where the device can multiply fp32 as TF32, 0 where it cannot."""
    if not has_matrix_units(recording.trace):
        return Missing("whether the device has faster units for matrix products is not known")
    return Measure(float(has_tf32(recording.trace)), "count", "device")


def types_multiplied(recording: Recording) -> Measure | Missing:
    """The types that products run in and on which units, each with its share of their time: `fp32 (vector): 82 %`."""
    ops = _products(recording)
    length = ops.end - ops.start
    if not length.sum():
        return Missing("no matrix product ran on the device")
    by_type: dict[str, float] = {}
    for name, share in zip(*_by_name(ops.name, length / length.sum()), strict=True):
        label = _label(precision_of(recording.trace.names[name]))
        by_type[label] = by_type.get(label, 0.0) + share
    most = sorted(((share, label) for label, share in by_type.items() if share >= WORTH_LISTING), reverse=True)
    return text_measure(", ".join(f"{label}: {share_text(share)}" for share, label in most), len(ops))


def reached_by_type(recording: Recording) -> Measure | Missing:
    """How near products come to what the device can reach in their type, weighted by time: `bf16 (tensor): 61 %`."""
    inside, length = _kernel_time(recording)
    ops = recording.trace.device_ops.take(inside)
    roof, reached = recording.kernel_bounds.bound_by[inside], recording.kernel_bounds.reached[inside]
    bound = (roof == BoundBy.COMPUTE) & (ops.work == Work.CONTRACTION)
    if not length[bound].sum():
        return Missing("no kernel's work is known from shapes; record_shapes=True records them")
    time: dict[str, float] = {}
    work: dict[str, float] = {}
    names, sums = _by_name(ops.name[bound], length[bound].astype(np.float64))
    _, done = _by_name(ops.name[bound], length[bound] * reached[bound])
    for name, taken, at_roof in zip(names, sums, done, strict=True):
        label = _label(precision_of(recording.trace.names[name]))
        time[label], work[label] = time.get(label, 0.0) + taken, work.get(label, 0.0) + at_roof
    most = sorted(((taken, label) for label, taken in time.items()), reverse=True)
    with_example = [
        f"{label}: {share_text(work[label] / taken)}" for taken, label in most if taken > WORTH_LISTING * sum(sums)
    ]
    return text_measure(", ".join(with_example), int(bound.sum()))


def peak_source(recording: Recording) -> Measure | Missing:
    """Where the device's peaks come from: calibration, data sheet or device properties."""
    peaks = peaks_of(recording.trace)
    return Missing("the device's peaks are not known") if peaks is None else text_measure(peaks.basis)


def misaligned_products(recording: Recording) -> Measure | Missing:
    """Share of the window in kernels chosen because a size or an address is no multiple of eight elements."""
    if not recording.on_device:
        return _NO_DEVICE
    ops = _products(recording)
    odd = {name: misaligned(recording.trace.names[name]) for name in np.unique(ops.name).tolist()}
    rows = np.array([odd[name] for name in ops.name.tolist()], np.bool_)
    ops = ops.take(rows)
    return with_example(
        float((ops.end - ops.start).sum()) / recording.account.window, "share", "window", ops.start, ops.end
    )


def misaligned_kernel(recording: Recording) -> Measure | Missing:
    """The misaligned kernel that takes most time, by name."""
    ops = _products(recording)
    ops = ops.take(np.array([misaligned(recording.trace.names[name]) for name in ops.name.tolist()], np.bool_))
    if not len(ops):
        return Missing("no misaligned kernel ran")
    name = int(np.argmax(np.bincount(ops.name, weights=ops.end - ops.start)))
    return longest_call_of(recording, name, ops.take(ops.name == name))


def _products(recording: Recording) -> DeviceOps:
    """Matrix products, convolutions and attention of the window."""
    ops = recording.trace.device_ops
    inside = (ops.end > recording.steps.begin) & (ops.start < recording.steps.end)
    return ops.take(inside & (ops.work == Work.CONTRACTION))


def _by_name(names: Ints, values: Floats) -> tuple[list[int], list[float]]:
    """The distinct names and the sum of the values of each."""
    distinct, which = np.unique(names, return_inverse=True)
    return distinct.tolist(), np.bincount(which, weights=values).tolist()


def _label(precision: Precision | None) -> str:
    if precision is None or precision.dtype is None:
        return "unknown type"
    return f"{precision.dtype} ({precision.unit})"


def _is_plain_fp32(precision: Precision | None) -> bool:
    return precision is not None and precision.unit == "vector" and precision.dtype == "fp32"


def _kernel_time(recording: Recording) -> tuple[Bools, Ints]:
    """Which device operations are kernels of the window that compute, and how long those take, in ns."""
    ops, steps = recording.trace.device_ops, recording.steps
    kernels = np.isin(ops.work, COMPUTE_KERNELS)
    inside: Bools = kernels & (ops.end > steps.begin) & (ops.start < steps.end)
    return inside, (ops.end - ops.start)[inside]


def _reached(recording: Recording, roof: BoundBy) -> Measure | Missing:
    inside, length = _kernel_time(recording)
    rows = recording.kernel_bounds.bound_by[inside] == roof
    if not length[rows].sum():
        return Missing("no kernel's work is known from shapes; record_shapes=True records them")
    reached = recording.kernel_bounds.reached[inside][rows]
    return Measure(float((reached * length[rows]).sum() / length[rows].sum()), "share", "roof", int(rows.sum()))
