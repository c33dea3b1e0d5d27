"""Measures of work that fewer kernels or operators could do: pointwise chains, optimizers that loop over parameters."""

import re

from tb_bottleneck.attribution.recording import Recording
from tb_bottleneck.intervals import intersect
from tb_bottleneck.knowledge.catalogue import first_match, operator_patterns
from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.trace.window import (
    device_work,
    host_calls,
    host_rows,
    in_host_steps,
    window_share,
    with_example,
)
from tb_bottleneck.regime import Regime
from tb_bottleneck.trace.device_ops import DeviceOps, Work
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.name_filter import name_matches
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Bools, Ints, Rows

# torch's own pointwise kernels, one operator each. Compiled kernels (triton_poi_...) are already fused.
_POINTWISE = re.compile(r"(vectorized|unrolled|legacy)?_?elementwise_kernel")
# Foreach and fused optimizers update hundreds of parameters with one kernel.
_MANY_PARAMETERS = ("aten::_foreach_", "aten::_fused_")
_MULTI_TENSOR = re.compile(r"multi_tensor_apply|FusedOptimizer|fused_adam", re.IGNORECASE)


def pointwise_share(recording: Recording) -> Measure | Missing:
    """Share of the window in pointwise kernels, or operators of a CPU run, that each do one operator.

    The optimizer's are left out: compiling the model does not fuse them.
    """
    return _pointwise_time(recording, in_optimizer=False)


def optimizer_pointwise(recording: Recording) -> Measure | Missing:
    """Share of the window in pointwise work of the optimizer, one parameter and one operator at a time."""
    return _pointwise_time(recording, in_optimizer=True)


def _pointwise_time(recording: Recording, in_optimizer: bool) -> Measure:
    if not recording.on_device:
        rows, own = _pointwise_operators(recording, in_optimizer)
        return Measure(float(own.sum()) / recording.account.window, "share", "window", len(rows))
    ops = pointwise_ops(recording, in_optimizer)
    return window_share(recording, ops.start, ops.end)


def pointwise_kernels(recording: Recording) -> Measure | Missing:
    """Pointwise kernels (see `pointwise_share`), or operators of a CPU run, per step."""
    if not recording.on_device:
        rows, _ = _pointwise_operators(recording, in_optimizer=False)
        return Measure(len(rows) / len(recording.steps), "count", "step", len(rows))
    ops = pointwise_ops(recording)
    return with_example(len(ops) / len(recording.steps), "count", "step", ops.start, ops.end)


def optimizer_launches(recording: Recording) -> Measure | Missing:
    """Launches per step inside Optimizer.step if each updates one parameter; 0 if they update many at once.

    On a CPU run these are the operators that Optimizer.step calls.
    """
    inside = _inside_optimizer(recording)
    if inside is None:
        return Missing("no optimizer step was recorded")
    many_at_once = host_rows(recording, lambda name: name.startswith(_MANY_PARAMETERS), Kind.CPU_OP)
    if len(_kernels(recording, _MULTI_TENSOR)) or len(many_at_once):
        return Measure(0.0, "count", "step", 0)
    return Measure(int(inside.sum()) / len(recording.steps), "count", "step", int(inside.sum()))


def optimizer_share(recording: Recording) -> Measure | Missing:
    """Share of the launch overhead that is inside Optimizer.step."""
    if not len(recording.optimizer_steps):
        return Missing("no optimizer step was recorded")
    overhead = recording.owned_spans.of(Regime.LAUNCH)
    inside = intersect(overhead, recording.optimizer_steps)
    share = inside.total() / max(overhead.total(), 1)
    return with_example(share, "share", "launch overhead", inside.starts, inside.ends)


def optimizer_work(recording: Recording) -> Measure | Missing:
    """Share of the window in operators of Optimizer.step that memory limits, on a CPU run."""
    if recording.on_device:
        return Missing("the device runs the optimizer's kernels while the host goes on")
    inside = intersect(recording.owned_spans.of(Regime.MEMORY), recording.optimizer_steps)
    return window_share(recording, inside.starts, inside.ends)


def _inside_optimizer(recording: Recording) -> Bools | None:
    """Returns a mask of the launches, or operators, that begin inside Optimizer.step; None if no step was recorded."""
    steps = recording.optimizer_steps
    if not len(steps):
        return None
    if recording.on_device:
        return steps.contains(host_calls(recording, Role.LAUNCH).start)
    starts = recording.trace.events.start[recording.trace.rows(Kind.CPU_OP)]
    return steps.contains(starts[in_host_steps(recording, starts)])


def pointwise_ops(recording: Recording, in_optimizer: bool = False) -> DeviceOps:
    """Returns torch's pointwise kernels: those that the optimizer launches, or all others."""
    ops, calls = _kernels(recording, _POINTWISE), recording.trace.calls
    launch_times = calls.start[ops.call] if len(calls) else ops.start
    optimizers: Bools = ops.launched & recording.optimizer_steps.contains(launch_times)
    return ops.take(optimizers == in_optimizer)


def _pointwise_operators(recording: Recording, in_optimizer: bool) -> tuple[Rows, Ints]:
    """Returns the pointwise operators of the main thread (the optimizer's, or all others) and their own time in ns."""
    trace, events, operators = recording.trace, recording.trace.events, recording.main_operators
    rows, own = operators.rows, operators.own
    chosen = (events.kind[rows] == Kind.CPU_OP) & in_host_steps(recording, events.start[rows])
    chosen &= name_matches(
        trace.names, events.name[rows], lambda name: first_match(operator_patterns(), name) == "pointwise"
    )
    chosen &= recording.optimizer_steps.contains(events.start[rows]) == in_optimizer
    return rows[chosen], own[chosen]


def _kernels(recording: Recording, pattern: re.Pattern[str]) -> DeviceOps:
    """Returns the streaming kernels of the window with a name that the pattern matches."""
    ops = device_work(recording, Work.STREAMING)
    return ops.take(name_matches(recording.trace.names, ops.name, lambda name: bool(pattern.search(name))))
