"""Measures of work that fewer kernels or operators could do: pointwise kernels, and optimizers that loop over the
parameters."""

import re

import numpy as np

from tb_bottleneck.attribution.memoize import memoized
from tb_bottleneck.attribution.trace_recording import Recording
from tb_bottleneck.base.intervals import Spans, intersect, subtract, union
from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.launch.scattered_updates import scattered_updates
from tb_bottleneck.knowledge.catalogue import first_match, operator_patterns
from tb_bottleneck.measures.trace.window_rows import (
    device_work,
    host_calls,
    host_rows,
    in_host_steps,
    window_share,
    with_example,
)
from tb_bottleneck.trace.device_ops import DeviceOps, Work
from tb_bottleneck.trace.kernel_names import name_matches
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.runtime_calls import Role
from tb_bottleneck.trace.table import Bools, Ints, Rows

# torch's own pointwise kernels, one operator each. Compiled kernels (triton_poi_...) are already fused.
_POINTWISE = re.compile(r"(vectorized|unrolled|legacy)?_?elementwise_kernel")
# Foreach and fused optimizers update hundreds of parameters with one kernel.
MANY_PARAMETERS = FOREACH, FUSED = "aten::_foreach_", "aten::_fused_"
_MULTI_TENSOR = re.compile(r"multi_tensor_apply|FusedOptimizer|fused_adam", re.IGNORECASE)
_FOREACH_KERNEL = re.compile(r"multi_tensor_apply(?!.*[Ff]used)")


def pointwise_share(recording: Recording) -> Measure | Missing:
    """Share of the window in torch's pointwise kernels, each of which computes one operator. On a CPU run, the share of
    the window in pointwise operators.

    Kernels in `parameter_passes` are left out, because compiling the model does not fuse these kernels.
    """
    return _pointwise_time(recording, None)


def optimizer_pointwise(recording: Recording) -> Measure | Missing:
    """Share of the window in pointwise kernels (see `pointwise_share`) and foreach kernels in `parameter_passes`."""
    return _pointwise_time(recording, parameter_passes(recording))


def beside_optimizer(recording: Recording) -> Measure | Missing:
    """The part of `optimizer_pointwise` outside of Optimizer.step; missing if there is none."""
    share = _pointwise_time(recording, subtract(parameter_passes(recording), recording.optimizer_steps))
    return share if share.value else Missing("only the optimizer passes over the parameters")


@memoized
def parameter_passes(recording: Recording) -> Spans:
    """Returns the time of the host's work on the parameters: Optimizer.step, and outside of it foreach operators and
    loops over tensors, such as clipping of gradients, averages and copies of weights."""
    rows = host_rows(recording, lambda name: name.startswith(FOREACH), Kind.CPU_OP)
    events, loops, steps = recording.trace.events, scattered_updates(recording), recording.optimizer_steps
    return union(
        np.concatenate((events.start[rows], loops.starts, steps.starts)),
        np.concatenate((events.end[rows], loops.ends, steps.ends)),
    )


def _pointwise_time(recording: Recording, passes: Spans | None) -> Measure:
    """Returns the share of the window in pointwise work; `passes` is as for `pointwise_ops`."""
    if not recording.on_device:
        rows, own = pointwise_operators(recording, passes)
        return Measure(float(own.sum()) / recording.account.window, "share", "window", len(rows))
    ops = pointwise_ops(recording, passes)
    return window_share(recording, ops.start, ops.end)


def pointwise_kernels(recording: Recording) -> Measure | Missing:
    """Number of pointwise kernels (see `pointwise_share`) per step; on a CPU run, the number of pointwise operators."""
    if not recording.on_device:
        rows, _ = pointwise_operators(recording)
        return Measure(len(rows) / len(recording.steps), "count", "step", len(rows))
    ops = pointwise_ops(recording)
    return with_example(len(ops) / len(recording.steps), "count", "step", ops.start, ops.end)


def optimizer_launches(recording: Recording) -> Measure | Missing:
    """Launches per step inside Optimizer.step, if each launch updates one parameter. 0 if the optimizer updates many
    parameters per launch.

    On a CPU run, the operators that Optimizer.step calls are counted instead of launches.
    """
    inside = _inside_optimizer(recording)
    if inside is None:
        return Missing("no optimizer step was recorded")
    many_at_once = host_rows(recording, lambda name: name.startswith(MANY_PARAMETERS), Kind.CPU_OP)
    if len(_kernels(recording, _MULTI_TENSOR)) or len(many_at_once):
        return Measure(0.0, "count", "step", 0)
    return Measure(int(inside.sum()) / len(recording.steps), "count", "step", int(inside.sum()))


def optimizer_share(recording: Recording) -> Measure | Missing:
    """Share of the launch overhead (the time of the regime `launch`) that is inside Optimizer.step."""
    if not len(recording.optimizer_steps):
        return Missing("no optimizer step was recorded")
    overhead = recording.owned_spans.of(Regime.LAUNCH)
    inside = intersect(overhead, recording.optimizer_steps)
    share = inside.total() / max(overhead.total(), 1)
    return with_example(share, "share", "launch overhead", inside.starts, inside.ends)


def optimizer_work(recording: Recording) -> Measure | Missing:
    """On a CPU run: share of the window in those operators of Optimizer.step that memory bandwidth limits."""
    if recording.on_device:
        return Missing("the device runs the optimizer's kernels while the host goes on")
    inside = intersect(recording.owned_spans.of(Regime.MEMORY), recording.optimizer_steps)
    return window_share(recording, inside.starts, inside.ends)


def _inside_optimizer(recording: Recording) -> Bools | None:
    """Returns a mask: True for each launch of the window (on a CPU run, each operator) that begins inside
    Optimizer.step. Returns None if no optimizer step was recorded."""
    steps = recording.optimizer_steps
    if not len(steps):
        return None
    if recording.on_device:
        return steps.contains(host_calls(recording, Role.LAUNCH).start)
    starts = recording.trace.events.start[recording.trace.rows(Kind.CPU_OP)]
    return steps.contains(starts[in_host_steps(recording, starts)])


def pointwise_ops(recording: Recording, passes: Spans | None = None) -> DeviceOps:
    """Returns torch's pointwise and foreach kernels of the window that were launched in the spans `passes`; without
    `passes`, the pointwise kernels outside of `parameter_passes`."""
    patterns = (_POINTWISE,) if passes is None else (_POINTWISE, _FOREACH_KERNEL)
    ops, calls = _kernels(recording, *patterns), recording.trace.calls
    launch_times = calls.start[ops.call] if len(calls) else ops.start
    spans = parameter_passes(recording) if passes is None else passes
    inside: Bools = ops.launched & spans.contains(launch_times)
    return ops.take(inside != (passes is None))


def pointwise_operators(recording: Recording, passes: Spans | None = None) -> tuple[Rows, Ints]:
    """Returns two arrays: the event rows of pointwise operators on the main thread, and the own time of each operator
    in ns (without the operators that it calls). `passes` is as for `pointwise_ops`."""
    trace, events, operators = recording.trace, recording.trace.events, recording.main_operators
    rows, own = operators.rows, operators.own
    chosen = (events.kind[rows] == Kind.CPU_OP) & in_host_steps(recording, events.start[rows])
    chosen &= name_matches(
        trace.names, events.name[rows], lambda name: first_match(operator_patterns(), name) == "pointwise"
    )
    spans = parameter_passes(recording) if passes is None else passes
    chosen &= spans.contains(events.start[rows]) != (passes is None)
    return rows[chosen], own[chosen]


def _kernels(recording: Recording, *patterns: re.Pattern[str]) -> DeviceOps:
    """Returns the streaming kernels of the window (kernels that mainly read and write memory) whose name contains a
    match of one of `patterns`."""
    ops, names = device_work(recording, Work.STREAMING), recording.trace.names
    return ops.take(name_matches(names, ops.name, lambda name: any(pattern.search(name) for pattern in patterns)))
