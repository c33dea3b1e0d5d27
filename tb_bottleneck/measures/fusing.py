"""Measures of work that could be done in fewer kernels: pointwise chains and optimizers that loop over parameters."""

import re

import numpy as np

from tb_bottleneck.intervals import union
from tb_bottleneck.measures.measure import Measure, Missing
from tb_bottleneck.measures.recording import Recording
from tb_bottleneck.trace.calls import Role
from tb_bottleneck.trace.device import DeviceOps, Work
from tb_bottleneck.trace.kinds import Kind

_NO_DEVICE = Missing("the work ran on the CPU: there are no kernels")
# torch's own pointwise kernels, one operator each; compiled ones (triton_poi_...) are fused already.
_POINTWISE = re.compile(r"(vectorized|unrolled|legacy)?_?elementwise_kernel")
# Kernels of foreach and fused optimizers take hundreds of parameters at once.
_MULTI_TENSOR = re.compile(r"multi_tensor_apply|FusedOptimizer|fused_adam", re.IGNORECASE)


def pointwise_share(recording: Recording) -> Measure | Missing:
    """Share of the window in pointwise kernels that each do one operator."""
    if not recording.on_device:
        return _NO_DEVICE
    ops = _kernels(recording, _POINTWISE)
    covered = union(ops.start, ops.end).covered(recording.steps.begin, recording.steps.end)
    return Measure(float(covered) / recording.account.window, "share", "window", len(ops))


def pointwise_kernels(recording: Recording) -> Measure | Missing:
    """Such kernels per step."""
    if not recording.on_device:
        return _NO_DEVICE
    ops = _kernels(recording, _POINTWISE)
    return Measure(len(ops) / len(recording.steps), "count", "step", len(ops))


def optimizer_launches(recording: Recording) -> Measure | Missing:
    """Launches per step inside Optimizer.step, where its kernels take one parameter each; 0 where they take many."""
    if not recording.on_device:
        return _NO_DEVICE
    inside = _optimizer_calls(recording)
    if inside is None:
        return Missing("no optimizer step was recorded")
    if len(_kernels(recording, _MULTI_TENSOR)):
        return Measure(0.0, "count", "step", 0)
    return Measure(int(inside.sum()) / len(recording.steps), "count", "step", int(inside.sum()))


def optimizer_share(recording: Recording) -> Measure | Missing:
    """Share of the window's launches that the optimizer makes."""
    inside = _optimizer_calls(recording) if recording.on_device else None
    if inside is None:
        return Missing("no optimizer step was recorded")
    return Measure(float(inside.mean()) if len(inside) else 0.0, "share", "launches", int(inside.sum()))


def _optimizer_calls(recording: Recording) -> "np.ndarray[tuple[int], np.dtype[np.bool_]] | None":
    """For each launch of the window whether it happens inside Optimizer.step; None where no such row is."""
    trace, events = recording.trace, recording.trace.events
    rows = trace.rows(Kind.ANNOTATION, Kind.CPU_OP)
    rows = rows[np.isin(events.name[rows], trace.names_where(lambda name: name.startswith("Optimizer.step#")))]
    if not len(rows):
        return None
    calls = trace.calls.of(Role.LAUNCH)
    calls = calls.take(recording.in_window(calls.start))
    return union(events.start[rows], events.end[rows]).contains(calls.start)


def _kernels(recording: Recording, pattern: re.Pattern[str]) -> DeviceOps:
    ops = recording.trace.device_ops
    ops = ops.take((ops.work == Work.STREAMING) & (ops.end > recording.steps.begin) & (ops.start < recording.steps.end))
    wanted = [name for name in np.unique(ops.name).tolist() if pattern.search(recording.trace.names[name])]
    return ops.take(np.isin(ops.name, wanted))
