"""launch: the device is idle while torch dispatches operators and launches kernels.

Signal: idle device time while the launching thread is in operators, runtime calls or the short pauses between them.
Formula: that time / the window. Half of it counts as recoverable: the profiler slows the dispatching host 1.6 to 2.1
times, so up to half of the recorded time is profiler overhead. If the step time without the profiler was recorded, the
measured overhead o replaces that half: the recoverable share is (share - o) / (1 - o), and it must reach the threshold.
On a CPU run, an unknown part of o is in the operators, from nothing to all of o: the mean of both extremes is used.
Threshold: fires at 10 % of the window; on a CPU run without torch.compile at 20 %, except for an optimizer that loops
over its parameters.
Source: 10 %: traceml's warning level for overheads (diagnostics/step_time/policy.py); 1.6 to 2.1: measured on torch
2.13 with 80 small layers, every combination of the profiler's options against none.
"""

from dataclasses import replace

from tb_bottleneck.base.measure import Measure, Missing, Record
from tb_bottleneck.base.regime import AVOIDABLE_REGIMES, Regime
from tb_bottleneck.bottlenecks.allocator.facts import fitting_batch
from tb_bottleneck.bottlenecks.communication.facts import data_parallel_devices, devices_used, idle_during_other_devices
from tb_bottleneck.bottlenecks.compute.kernels import kernel_time, kernels
from tb_bottleneck.bottlenecks.host.facts import models, operators, time_per_launch, values_read_singly
from tb_bottleneck.bottlenecks.launch.anomaly_detection import anomaly_share
from tb_bottleneck.bottlenecks.launch.blocking_launches import blocking_share
from tb_bottleneck.bottlenecks.launch.compilation import (
    compiled_kernels,
    compiled_regions,
    eager_functions,
    graph_breaks,
    graph_launches,
)
from tb_bottleneck.bottlenecks.launch.compiled_steps import broken_graphs
from tb_bottleneck.bottlenecks.launch.device_checks import checks_per_step, idle_in_checks
from tb_bottleneck.bottlenecks.launch.micro_batches import batch_to_try, idle_in_micro_batches, micro_batches_per_step
from tb_bottleneck.bottlenecks.launch.operator_loops import idle_in_unbatched_calls, unbatched_calls
from tb_bottleneck.bottlenecks.launch.recurrent_cells import cells_per_step, cells_share, idle_in_cells
from tb_bottleneck.bottlenecks.launch.scattered_updates import (
    idle_in_scattered_updates,
    scattered_operators,
    scattered_updates_per_step,
)
from tb_bottleneck.bottlenecks.memory.fusion import optimizer_launches, optimizer_share, optimizer_work
from tb_bottleneck.bottlenecks.rule_types import CLEAR, FIRES, Cause, Judgement, Rule, idle_judgement
from tb_bottleneck.measures.measure_set import MeasureFunction, Measures
from tb_bottleneck.measures.profiler_overhead import overhead_left, profiler_overhead
from tb_bottleneck.measures.trace import Recording
from tb_bottleneck.measures.trace.process_facts import on_windows

FIRES_AT = 0.10
# Eager operators of usual layers take up to 16 % of a step on the CPU. torch.compile made six of seven such trainings
# slower, 0.5 to 0.9 times their speed, and one had 0.93 and 1.1 times in two measurements (cpu_changes.py, torch
# 2.13, one core of an Intel Xeon).
FIRES_AT_ON_CPU = 0.20
RECOVERABLE_OF_LAUNCHES = 0.5
# A foreach or fused optimizer launches a few kernels per step; one that loops launches several for each parameter.
# torch's foreach has been the default on CUDA since 2.0.
LOOPING_LAUNCHES = 100
# A model counts as compiled if half of its kernels are the compiler's: the others are products from libraries.
COMPILED = 0.5
# A tenth of the window in a loop over items is worth reporting, as for the whole regime.
MIN_UNBATCHED_SHARE = FIRES_AT
# If nearly all launches wait for their kernel, a setting makes them wait. A choice: without it, few of them do.
ALL_BLOCK = 0.9
# Fewer cells per step are not a loop over time. A choice, as for calls of one item.
SEVERAL_CELLS = 8.0
SEVERAL_MICRO_BATCHES = 2
# On a CPU run, the pointwise operators belong to the cells if their forward pass takes this share of the window; the
# backward pass takes about twice as long. A choice.
MOST_IN_CELLS = 0.25
# One check per step, such as that of a gradient scaler, is usual. A loop or checks with this share of the window are
# worth naming: one line of code changes them. Both numbers are choices.
SEVERAL_CHECKS, MIN_SPECIFIC_SHARE = 3.0, 0.05
# From this share of the window on, and if there is little else to fix, a larger batch is worth the change of the
# learning rate that it needs. A choice.
MOSTLY_LAUNCHES = 0.5
# If this part of the launch overhead is in an optimizer that loops, small kernels are no cause of their own.
ALL_BY_OPTIMIZER = 0.9
# If another device of the process works for most of this time, faster launches would only start that device earlier.
OTHER_DEVICES_SHARE = 0.5


def judge(measures: Measures[Recording]) -> Judgement[Recording]:
    """Returns the judgement of `launch` for a trace. If the overhead of the profiler was measured, the judgement is
    `clear` if less than FIRES_AT of the window remains after the overhead is subtracted. On a CPU run, anomaly
    detection that takes longer than all launch overhead is the only cause."""
    share, recoverable = measures.account.share(Regime.LAUNCH), _recoverable(measures)
    detection = measures.value(anomaly_share, otherwise=0.0)
    if not measures.on_device and detection >= max(share, FIRES_AT):  # its checks are operators, in another regime
        return Judgement(FIRES, detection, detection, (_anomaly_detection(detection),))
    if isinstance(measures(profiler_overhead), Measure) and share * recoverable < FIRES_AT:
        return Judgement(CLEAR, share, share * recoverable)
    judgement = idle_judgement(measures, Regime.LAUNCH, FIRES_AT, _causes, recoverable)
    # On a CPU run, operators of usual layers are no cause, and nothing is known to recover their time.
    return judgement if judgement.causes or judgement.status == CLEAR else Judgement(CLEAR, share)


def _recoverable(measures: Measures[Recording]) -> float:
    """Returns the part (0 to 1) of the regime's share that counts as recoverable: the part that is not overhead of the
    profiler. The module's docstring states the formula."""
    share, overhead = measures.account.share(Regime.LAUNCH), measures(profiler_overhead)
    if isinstance(overhead, Missing) or share <= 0:
        return RECOVERABLE_OF_LAUNCHES
    # The recoverable part if all of the overhead is in this regime.
    part = max(share - overhead.value, 0.0) / (1 - overhead.value) / share
    return part if measures.on_device else (part + 1) / 2


def _causes(measures: Measures[Recording]) -> tuple[Cause[Recording], ...]:
    """Returns the causes of launch overhead. Called only if the rule fires. Can be empty on a CPU run, where usual
    layers are no cause."""
    if measures.value(blocking_share, otherwise=0.0) >= ALL_BLOCK:
        waiting = Cause("blocking_launches", measures.account.share(Regime.LAUNCH), (blocking_share,), bounded=False)
        return (waiting,)  # the other causes are hidden: the host cannot go ahead of the device
    detection = measures.value(anomaly_share, otherwise=0.0)
    if detection < MIN_SPECIFIC_SHARE:
        return _usual_causes(measures)
    # It takes most of the time of small operators, and other causes are judged without it.
    return (_anomaly_detection(detection), *_usual_causes(measures))


def _anomaly_detection(share: float) -> Cause[Recording]:
    return Cause("anomaly_detection", share, (anomaly_share,), bounded=False)


def _usual_causes(measures: Measures[Recording]) -> tuple[Cause[Recording], ...]:
    share = measures.account.share(Regime.LAUNCH)
    if not measures.on_device:
        return _causes_on_cpu(measures, share)
    evidence = (
        kernels,
        kernel_time,
        time_per_launch,
        operators,
        graph_breaks,
        eager_functions,
        broken_graphs,
        overhead_left,
        on_windows,
    )
    compiled = measures.value(compiled_kernels, otherwise=0.0) >= COMPILED
    if measures.value(data_parallel_devices, otherwise=0.0) > 1:
        # DataParallel replicates the model in each step, which a graph cannot replay: small kernels are no cause of
        # their own.
        causes = [Cause("data_parallel", share, (data_parallel_devices, *evidence))]
    elif compiled and not measures.value(graph_launches, otherwise=0.0):
        causes = [Cause("no_graph", share, (compiled_kernels, graph_launches, *evidence))]
    else:
        causes = [cause for one in (_MICRO_BATCHES, _CELLS, _SCATTERED) for cause in one.causes(measures)]
        rest = max(share - sum(cause.cost_share for cause in causes), 0.0)
        if rest >= FIRES_AT or not causes:  # the fixes of the specific causes remove most launches
            causes.append(Cause("small_kernels", rest, (*evidence, fitting_batch)))
    turns = measures.value(idle_during_other_devices, otherwise=0.0) >= OTHER_DEVICES_SHARE * share
    if turns and causes[0].name != "data_parallel":
        return (Cause("devices_take_turns", share, (idle_during_other_devices, devices_used), bounded=False),)
    loop = _loop(measures)
    if loop and loop[0].cost_share >= ALL_BY_OPTIMIZER * share:
        causes = []  # nothing else launches small kernels
    found = (*causes, *_CHECKS.causes(measures), *_UNBATCHED.causes(measures), *loop)
    others = sum(measures.account.share(regime) for regime in AVOIDABLE_REGIMES) - share
    larger = share >= MOSTLY_LAUNCHES and others < FIRES_AT and isinstance(measures(batch_to_try), Measure)
    if larger and [cause.name for cause in found] == ["small_kernels"]:  # no line of the program is to blame
        return (Cause("small_batch", share, _SMALL_BATCH, bounded=False), *found)
    return found


def _causes_on_cpu(measures: Measures[Recording], share: float) -> tuple[Cause[Recording], ...]:
    """Returns the usual causes of a CPU run. `share` is the regime's share of the window."""
    # The costs are no bounds: fewer and larger operators do their own work faster, too. For the optimizer, this
    # work is known and added.
    work = measures.value(optimizer_work, otherwise=0.0)
    loop = tuple(replace(cause, cost_share=cause.cost_share + work, bounded=False) for cause in _loop(measures))
    scattered = _SCATTERED.causes(measures)
    rest = share - sum(cause.cost_share - work for cause in loop) - sum(cause.cost_share for cause in scattered)
    loop = (*scattered, *loop)
    if isinstance(measures(compiled_regions), Measure) or isinstance(measures(eager_functions), Measure):
        uncompiled = (compiled_regions, eager_functions, broken_graphs, operators, overhead_left)
        return (*loop, Cause("operators_outside_graphs", rest, uncompiled, bounded=False))
    called = (operators, values_read_singly, overhead_left, on_windows)
    if rest < FIRES_AT_ON_CPU:
        return loop
    if measures.value(micro_batches_per_step, otherwise=0.0) >= SEVERAL_MICRO_BATCHES:
        return (*loop, Cause("small_batch", rest, _SMALL_BATCH, bounded=False))
    # The gain of torch.compile was measured for models. For other programs, it is not known.
    is_model = measures.value(models, otherwise=1.0) > 0
    if measures.value(cells_per_step, otherwise=0.0) >= SEVERAL_CELLS:
        # One call of a layer also fuses the pointwise operators of the cells.
        most = measures.value(cells_share, otherwise=0.0) >= MOST_IN_CELLS
        fixes = frozenset({"unfused_pointwise"}) if most else frozenset()
        seen = (cells_per_step, operators, idle_in_cells)
        return (*loop, Cause("recurrent_cells", rest, seen, bounded=False, also_fixes=fixes))
    return (*loop, Cause("small_operators", rest, called, bounded=False, certain=is_model))


class _Specific(Record, frozen=True):
    """A cause of launches that one change of the program removes. `idle` is the device's idle time that it causes, from
    `least` on (shares of the window). If `count` is given, it must be at least `several` per step."""

    name: str
    idle: MeasureFunction[Recording]
    shown: tuple[MeasureFunction[Recording], ...]
    least: float
    count: MeasureFunction[Recording] | None = None
    several: float = 0.0

    def causes(self, measures: Measures[Recording]) -> tuple[Cause[Recording], ...]:
        """Returns the cause if the recording shows it, otherwise ()."""
        idle = measures.value(self.idle, otherwise=0.0)
        few = self.count is not None and measures.value(self.count, otherwise=0.0) < self.several
        if idle < self.least or few:
            return ()
        part = min(idle, measures.account.share(Regime.LAUNCH))
        return (Cause(self.name, part, (*self.shown, self.idle), bounded=False),)


_MICRO_BATCHES = _Specific(
    "small_batch", idle_in_micro_batches, (micro_batches_per_step, batch_to_try, fitting_batch), MIN_UNBATCHED_SHARE
)
_SMALL_BATCH = (*_MICRO_BATCHES.shown, _MICRO_BATCHES.idle)
_CELLS = _Specific(
    "recurrent_cells", idle_in_cells, (cells_per_step, operators), FIRES_AT, cells_per_step, SEVERAL_CELLS
)
_SCATTERED = _Specific(
    "scattered_updates",
    idle_in_scattered_updates,
    (scattered_updates_per_step, scattered_operators),
    MIN_SPECIFIC_SHARE,
)
_CHECKS = _Specific(
    "device_checks", idle_in_checks, (checks_per_step,), MIN_SPECIFIC_SHARE, checks_per_step, SEVERAL_CHECKS
)
_UNBATCHED = _Specific("unbatched_calls", idle_in_unbatched_calls, (unbatched_calls, kernel_time), MIN_UNBATCHED_SHARE)


def _loop(measures: Measures[Recording]) -> tuple[Cause[Recording], ...]:
    """Returns the cause `optimizer_for_loop` if the optimizer updates one parameter after the other, with at least
    LOOPING_LAUNCHES launches per step; otherwise ()."""
    if measures.value(optimizer_launches, otherwise=0.0) < LOOPING_LAUNCHES:
        return ()
    part = measures.account.share(Regime.LAUNCH) * measures.value(optimizer_share, otherwise=0.0)
    return (Cause("optimizer_for_loop", part, (optimizer_launches, optimizer_share, optimizer_work)),)


RULE = Rule(Regime.LAUNCH, judge, FIRES_AT)
