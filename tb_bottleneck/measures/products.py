"""Measures of how well the device's arithmetic and bandwidth are used: roofs, precisions, alignment."""

import numpy as np

from tb_bottleneck.knowledge.gpus import gpu_named
from tb_bottleneck.knowledge.precisions import Precision, misaligned, precision_of
from tb_bottleneck.measures.measure import Measure, Missing, words
from tb_bottleneck.measures.recording import Recording
from tb_bottleneck.measures.roofs import Roof
from tb_bottleneck.trace.device import DeviceOps, Work
from tb_bottleneck.trace.table import Bools, Ints

_NO_DEVICE = Missing("the work ran on the CPU: there are no kernels")
MATRIX_TYPES = {"tf32", "bf16", "fp16"}


def roofs_known(recording: Recording) -> Measure | Missing:
    """Share of the kernels' time whose roof is known from shapes; the rest goes by kernel names."""
    inside, length = _kernel_time(recording)
    if not length.sum():
        return _NO_DEVICE
    known = recording.roofs.roof[inside] != Roof.UNKNOWN
    return Measure(float(length[known].sum() / length.sum()), "share", "kernel time", len(length))


def compute_reached(recording: Recording) -> Measure | Missing:
    """How near the kernels that arithmetic bounds come to what the device can reach, weighted by time."""
    return _reached(recording, Roof.COMPUTE)


def memory_reached(recording: Recording) -> Measure | Missing:
    """How near the kernels that bandwidth bounds come to the device's bandwidth, weighted by time."""
    return _reached(recording, Roof.MEMORY)


def full_precision_products(recording: Recording) -> Measure | Missing:
    """Share of the window in which matrix products and convolutions run in fp32 on ordinary arithmetic units.

    Missing where the device has no matrix units that its kernels could use, or is not known; zero where half of the
    products or more run on matrix units already.
    """
    facts = recording.trace.header.device(recording.trace.device_index)
    gpu = gpu_named(facts.name) if facts is not None else None
    if gpu is None or not MATRIX_TYPES & gpu.tflops.keys():
        return Missing("whether the device has faster units for matrix products is not known")
    ops = _products(recording)
    length = ops.end - ops.start
    told = {name: precision_of(recording.trace.names[name]) for name in np.unique(ops.name).tolist()}
    vector = np.array([_is_plain_fp32(told[name]) for name in ops.name.tolist()], np.bool_)
    matrix = np.array([(p := told[name]) is not None and p.unit == "tensor" for name in ops.name.tolist()], np.bool_)
    if length[matrix].sum() >= length[vector].sum():
        return Measure(0.0, "share", "window", 0)
    return Measure(float(length[vector].sum()) / recording.account.window, "share", "window", int(vector.sum()))


def misaligned_products(recording: Recording) -> Measure | Missing:
    """Share of the window in kernels chosen because a size or an address is no multiple of eight elements."""
    if not recording.on_device:
        return _NO_DEVICE
    ops = _products(recording)
    odd = {name: misaligned(recording.trace.names[name]) for name in np.unique(ops.name).tolist()}
    rows = np.array([odd[name] for name in ops.name.tolist()], np.bool_)
    length = (ops.end - ops.start)[rows]
    return Measure(float(length.sum()) / recording.account.window, "share", "window", int(rows.sum()))


def misaligned_kernel(recording: Recording) -> Measure | Missing:
    """The misaligned kernel that takes most time, by name."""
    ops = _products(recording)
    ops = ops.take(np.array([misaligned(recording.trace.names[name]) for name in ops.name.tolist()], np.bool_))
    if not len(ops):
        return Missing("no misaligned kernel ran")
    totals = np.bincount(ops.name, weights=ops.end - ops.start)
    return words(recording.trace.names[int(np.argmax(totals))], len(ops))


def _products(recording: Recording) -> DeviceOps:
    """Matrix products, convolutions and attention of the window."""
    ops = recording.trace.device_ops
    inside = (ops.end > recording.steps.begin) & (ops.start < recording.steps.end)
    return ops.take(inside & (ops.work == Work.CONTRACTION))


def _is_plain_fp32(precision: Precision | None) -> bool:
    return precision is not None and precision.unit == "vector" and precision.dtype == "fp32"


def _kernel_time(recording: Recording) -> tuple[Bools, Ints]:
    """Which device operations are kernels of the window that compute, and how long those take, in ns."""
    ops, steps = recording.trace.device_ops, recording.steps
    kernels = np.isin(ops.work, (Work.CONTRACTION, Work.STREAMING, Work.UNKNOWN))
    inside: Bools = kernels & (ops.end > steps.begin) & (ops.start < steps.end)
    return inside, (ops.end - ops.start)[inside]


def _reached(recording: Recording, roof: Roof) -> Measure | Missing:
    inside, length = _kernel_time(recording)
    rows = recording.roofs.roof[inside] == roof
    if not length[rows].sum():
        return Missing("no kernel's work is known from shapes; record_shapes=True records them")
    reached = recording.roofs.reached[inside][rows]
    return Measure(float((reached * length[rows]).sum() / length[rows].sum()), "share", "roof", int(rows.sum()))
