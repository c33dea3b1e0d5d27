"""Measures of the device at work: kernels, copies, collectives, and the threads of a run on the CPU."""

import numpy as np

from tb_bottleneck.measures.measure import Measure, Missing, words
from tb_bottleneck.measures.recording import Recording
from tb_bottleneck.measures.smallness import underfilled
from tb_bottleneck.trace.device import DeviceOps, Work
from tb_bottleneck.trace.table import Bools

_NO_DEVICE = Missing("the work ran on the CPU: there are no kernels")


def busy_share(recording: Recording) -> Measure | Missing:
    """Share of the window in which the device works."""
    if not recording.on_device:
        return _NO_DEVICE
    return Measure(
        1 - recording.idle.total() / recording.account.window, "share", "window", len(recording.trace.device_ops)
    )


def kernels(recording: Recording) -> Measure | Missing:
    """Kernels per step."""
    ops = _ops(recording, Work.CONTRACTION, Work.STREAMING, Work.UNKNOWN)
    return Measure(len(ops) / len(recording.steps), "count", "step", len(ops)) if recording.on_device else _NO_DEVICE


def kernel_time(recording: Recording) -> Measure | Missing:
    """Median time of a kernel."""
    ops = _ops(recording, Work.CONTRACTION, Work.STREAMING, Work.UNKNOWN)
    if not len(ops):
        return _NO_DEVICE
    return Measure(float(np.median(ops.end - ops.start)), "ns", "call", len(ops))


def dearest_kernel(recording: Recording) -> Measure | Missing:
    """The kernel name that takes most device time; hostile text."""
    ops = _ops(recording, Work.CONTRACTION, Work.STREAMING, Work.UNKNOWN)
    return _dearest(recording, ops) if len(ops) else _NO_DEVICE


def underfilled_share(recording: Recording) -> Measure | Missing:
    """Share of the kernels that are too small to fill the device."""
    ops = _ops(recording, Work.CONTRACTION, Work.STREAMING, Work.UNKNOWN)
    if not len(ops):
        return _NO_DEVICE
    small = underfilled(ops, recording.trace.multiprocessors)
    return Measure(float(small.mean()), "share", "kernels", len(ops))


def multiprocessors(recording: Recording) -> Measure | Missing:
    """Multiprocessors of the device."""
    if recording.trace.multiprocessors is None:
        return Missing("the recording does not tell how many multiprocessors the device has")
    return Measure(float(recording.trace.multiprocessors), "count", "device")


def host_copies(recording: Recording) -> Measure | Missing:
    """Bytes per step copied between host and device."""
    if not recording.on_device:
        return _NO_DEVICE
    ops = _ops(recording, Work.UPLOAD, Work.DOWNLOAD)
    return Measure(float(ops.bytes.sum()) / len(recording.steps), "bytes", "step", len(ops))


def pageable_copies(recording: Recording) -> Measure | Missing:
    """Bytes per step copied to the device from memory that is not pinned. ROCm does not tell which memory is."""
    ops = _ops(recording, Work.UPLOAD, Work.DOWNLOAD)
    names = recording.trace.names
    told = [any(word in names[name] for word in ("Pageable", "Pinned")) for name in ops.name.tolist()]
    if not any(told):
        return Missing("the recording does not tell pinned from pageable memory")
    rows = np.array(["Pageable -> Device" in names[name] for name in ops.name.tolist()], np.bool_)
    return Measure(float(ops.bytes[rows].sum()) / len(recording.steps), "bytes", "step", int(rows.sum()))


def collectives(recording: Recording) -> Measure | Missing:
    """Collectives per step on the device."""
    if not recording.on_device:
        return _NO_DEVICE
    ops = _ops(recording, Work.COLLECTIVE)
    return Measure(len(ops) / len(recording.steps), "count", "step", len(ops))


def dearest_collective(recording: Recording) -> Measure | Missing:
    """The collective that takes most device time, by kernel name."""
    ops = _ops(recording, Work.COLLECTIVE)
    return _dearest(recording, ops) if len(ops) else Missing("no collective ran on the device")


def threads_per_core(recording: Recording) -> Measure | Missing:
    """Intra-op threads of all local processes per core that is really available, from the run's context."""
    context = recording.trace.header.context
    threads, cores = context.get("torch_threads"), context.get("cores")
    processes = context.get("local_world_size", 1)
    usable = all(isinstance(value, int | float) and value > 0 for value in (threads, cores, processes))
    if not usable or threads is None or cores is None:
        return Missing("the run's context was not recorded; tb_bottleneck.monitor.context adds it to the trace")
    return Measure(threads * processes / cores, "count", "core", int(threads), witness="context")


def torch_threads(recording: Recording) -> Measure | Missing:
    """Intra-op threads of this process, from the run's context."""
    return _context_number(recording, "torch_threads")


def cores(recording: Recording) -> Measure | Missing:
    """Cores really available to this process, from the run's context."""
    return _context_number(recording, "cores")


def _context_number(recording: Recording, key: str) -> Measure | Missing:
    value = recording.trace.header.context.get(key)
    if isinstance(value, int | float) and value > 0:
        return Measure(float(value), "count", "process", witness="context")
    return Missing("the run's context was not recorded; tb_bottleneck.monitor.context adds it to the trace")


def _ops(recording: Recording, *works: Work) -> DeviceOps:
    ops = recording.trace.device_ops
    rows: Bools = np.isin(ops.work, works) & (ops.end > recording.steps.begin) & (ops.start < recording.steps.end)
    return ops.take(rows)


def _dearest(recording: Recording, ops: DeviceOps) -> Measure:
    totals = np.bincount(ops.name, weights=ops.end - ops.start, minlength=len(recording.trace.names))
    name = int(np.argmax(totals))
    return words(recording.trace.names[name], int((ops.name == name).sum()))
