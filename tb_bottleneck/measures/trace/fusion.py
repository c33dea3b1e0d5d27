"""Measures of work that fewer kernels or operators could do: pointwise chains, optimizers that loop over weights."""

import re

import numpy as np

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import Spans, union
from tb_bottleneck.knowledge.catalogue import first_match, operator_patterns
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.trace.window import host_calls, host_rows, in_host_steps, with_example
from tb_bottleneck.trace.device_ops import DeviceOps, Work
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.nesting import nest
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Bools, Ints, Rows

# torch's own pointwise kernels, one operator each; compiled ones (triton_poi_...) are fused already.
_POINTWISE = re.compile(r"(vectorized|unrolled|legacy)?_?elementwise_kernel")
# Kernels of foreach and fused optimizers take hundreds of parameters at once.
_TOGETHER = ("aten::_foreach_", "aten::_fused_")
_MULTI_TENSOR = re.compile(r"multi_tensor_apply|FusedOptimizer|fused_adam", re.IGNORECASE)


def pointwise_share(recording: Recording) -> Measure | Missing:
    """Share of the window in pointwise work that is one operator each: kernels, or operators of a run on the CPU.

    Without the optimizer's own: who compiles the model does not fuse that.
    """
    return _pointwise_time(recording, stepping=False)


def optimizer_pointwise(recording: Recording) -> Measure | Missing:
    """Share of the window in pointwise work of the optimizer, one parameter and one operator at a time."""
    return _pointwise_time(recording, stepping=True)


def _pointwise_time(recording: Recording, stepping: bool) -> Measure:
    if not recording.on_device:
        rows, own = _pointwise_operators(recording, stepping)
        return Measure(float(own.sum()) / recording.account.window, "share", "window", len(rows))
    ops = _pointwise_kernels(recording, stepping)
    covered = union(ops.start, ops.end).covered(recording.steps.begin, recording.steps.end)
    return with_example(float(covered) / recording.account.window, "share", "window", ops.start, ops.end)


def pointwise_kernels(recording: Recording) -> Measure | Missing:
    """Such kernels, or operators, per step."""
    if not recording.on_device:
        rows, _ = _pointwise_operators(recording, stepping=False)
        return Measure(len(rows) / len(recording.steps), "count", "step", len(rows))
    ops = _pointwise_kernels(recording, stepping=False)
    return with_example(len(ops) / len(recording.steps), "count", "step", ops.start, ops.end)


def optimizer_launches(recording: Recording) -> Measure | Missing:
    """Launches per step inside Optimizer.step, where each takes one parameter; 0 where they take many at once.

    On the CPU they are the operators that it calls.
    """
    inside = _inside_optimizer(recording)
    if inside is None:
        return Missing("no optimizer step was recorded")
    together = host_rows(recording, lambda name: name.startswith(_TOGETHER), Kind.CPU_OP)
    if len(_kernels(recording, _MULTI_TENSOR)) or len(together):
        return Measure(0.0, "count", "step", 0)
    return Measure(int(inside.sum()) / len(recording.steps), "count", "step", int(inside.sum()))


def optimizer_share(recording: Recording) -> Measure | Missing:
    """Share of the launches, on the CPU of the operators, that the optimizer makes."""
    inside = _inside_optimizer(recording)
    if inside is None:
        return Missing("no optimizer step was recorded")
    return Measure(float(inside.mean()) if len(inside) else 0.0, "share", "launches", int(inside.sum()))


def _inside_optimizer(recording: Recording) -> Bools | None:
    """For each launch, or operator, whether it begins inside Optimizer.step; None where no such row is."""
    steps = _optimizer_steps(recording)
    if not len(steps):
        return None
    if recording.on_device:
        return steps.contains(host_calls(recording, Role.LAUNCH).start)
    starts = recording.trace.events.start[recording.trace.rows(Kind.CPU_OP)]
    return steps.contains(starts[in_host_steps(recording, starts)])


def _optimizer_steps(recording: Recording) -> Spans:
    """When the host is inside Optimizer.step."""
    events = recording.trace.events
    rows = host_rows(recording, lambda name: name.startswith("Optimizer.step#"), Kind.ANNOTATION, Kind.CPU_OP)
    return union(events.start[rows], events.end[rows])


def _pointwise_kernels(recording: Recording, stepping: bool) -> DeviceOps:
    """torch's pointwise kernels, those that the optimizer launches or all others."""
    ops, calls = _kernels(recording, _POINTWISE), recording.trace.calls
    begun = calls.start[ops.call] if len(calls) else ops.start
    optimizers: Bools = ops.launched & _optimizer_steps(recording).contains(begun)
    return ops.take(optimizers == stepping)


def _pointwise_operators(recording: Recording, stepping: bool) -> tuple[Rows, Ints]:
    """The pointwise operators of the main thread, the optimizer's or all others, and their own time in ns."""
    trace, events = recording.trace, recording.trace.events
    rows = trace.rows(Kind.CPU_OP)
    rows = rows[(events.thread[rows] == recording.host.main_thread) & in_host_steps(recording, events.start[rows])]
    own = nest(events.start[rows], events.end[rows]).self_times()
    pointwise = name_matches(
        trace.names, events.name[rows], lambda name: first_match(operator_patterns(), name) == "pointwise"
    )
    chosen = pointwise & (_optimizer_steps(recording).contains(events.start[rows]) == stepping)
    return rows[chosen], own[chosen]


def _kernels(recording: Recording, pattern: re.Pattern[str]) -> DeviceOps:
    ops = recording.trace.device_ops
    ops = ops.take((ops.work == Work.STREAMING) & (ops.end > recording.steps.begin) & (ops.start < recording.steps.end))
    wanted = [name for name in np.unique(ops.name).tolist() if pattern.search(recording.trace.names[name])]
    return ops.take(np.isin(ops.name, wanted))
