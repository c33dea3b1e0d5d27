"""launch: the device is idle while torch dispatches operators and launches kernels.

Signal: idle device time while the launching thread is in operators, runtime calls or the short pauses between them.
Formula: that time / the window. Half of it counts as recoverable: while it records, the profiler slows the dispatching
host 1.6 to 2.1 times, so up to half of what is seen is the profiler's own. Where the step time without the profiler was
recorded, its measured overhead o takes the place of that half: (share - o) / (1 - o), and that share has to fire. On a
CPU run the operators bear a part of o as well, from none to as much as this share bears: the middle of both is taken.
Threshold: fires at 10 % of the window.
Source: 10 %: traceml's warning level for overheads (diagnostics/step_time/policy.py); 1.6 to 2.1: measured on torch
2.13 with 80 small layers, every combination of the profiler's options against none.
"""

from dataclasses import replace

from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.measure_set import Measures, Recording
from tb_bottleneck.measures.trace.collectives import data_parallel_devices, devices_used, idle_during_other_devices
from tb_bottleneck.measures.trace.compilation import compiled_kernels, graph_breaks, graph_launches
from tb_bottleneck.measures.trace.fusion import optimizer_launches, optimizer_share
from tb_bottleneck.measures.trace.host_dispatch import operators, time_per_launch
from tb_bottleneck.measures.trace.kernels import kernel_time, kernels
from tb_bottleneck.measures.trace.profiler_overhead import profiler_overhead
from tb_bottleneck.regime import Regime
from tb_bottleneck.regimes.rule import CLEAR, Cause, Judgement, Rule, idle_judgement

FIRES_AT = 0.10
RECOVERABLE_OF_LAUNCHES = 0.5
# A foreach or fused optimizer launches a handful of kernels per step, one that loops several for each parameter;
# torch's foreach has been the default on CUDA since 2.0.
LOOPING_LAUNCHES = 100
# A model counts as compiled where half of its kernels are the compiler's: the others are products from libraries.
COMPILED = 0.5
# Where another device of the process works for most of this time, faster launches would only start that one earlier.
OTHER_DEVICES_SHARE = 0.5


def judge(measures: Measures[Recording]) -> Judgement[Recording]:
    """Small kernels: the device finishes each one before the host has launched the next. On a CPU run, operators."""
    share, own = measures.account.share(Regime.LAUNCH), _recoverable(measures)
    if isinstance(measures(profiler_overhead), Measure) and share * own < FIRES_AT:
        return Judgement(CLEAR, share, share * own)
    return idle_judgement(measures, Regime.LAUNCH, FIRES_AT, _causes, own)


def _recoverable(measures: Measures[Recording]) -> float:
    """The part of the regime's share that is not the profiler's own."""
    share, overhead = measures.account.share(Regime.LAUNCH), measures(profiler_overhead)
    if isinstance(overhead, Missing) or share <= 0:
        return RECOVERABLE_OF_LAUNCHES
    all_here = max(share - overhead.value, 0.0) / (1 - overhead.value) / share
    return all_here if measures.on_device else (all_here + 1) / 2


def _causes(measures: Measures[Recording]) -> tuple[Cause[Recording], ...]:
    share = measures.account.share(Regime.LAUNCH)
    if not measures.on_device:
        # No bounds: fewer and larger operators do their own work faster, too.
        loop = tuple(replace(cause, bounded=False) for cause in _loop(measures))
        rest = share - sum(cause.cost_share for cause in loop)
        return (*loop, Cause("small_operators", rest, (operators, profiler_overhead), bounded=False))
    shown = (kernels, kernel_time, time_per_launch, operators, graph_breaks, profiler_overhead)
    compiled = measures.value(compiled_kernels, otherwise=0.0) >= COMPILED
    if compiled and not measures.value(graph_launches, otherwise=0.0):
        causes = [Cause("no_graph", share, (compiled_kernels, graph_launches, *shown))]
    else:
        causes = [Cause("small_kernels", share, shown)]
    if measures.value(data_parallel_devices, otherwise=0.0) > 1:
        causes.insert(0, Cause("data_parallel", share, (data_parallel_devices, *shown)))
    elif measures.value(idle_during_other_devices, otherwise=0.0) >= OTHER_DEVICES_SHARE * share:
        return (Cause("devices_take_turns", share, (idle_during_other_devices, devices_used), bounded=False),)
    return (*causes, *_loop(measures))


def _loop(measures: Measures[Recording]) -> tuple[Cause[Recording], ...]:
    """The optimizer, where it takes one parameter after the other."""
    if measures.value(optimizer_launches, otherwise=0.0) < LOOPING_LAUNCHES:
        return ()
    part = measures.account.share(Regime.LAUNCH) * measures.value(optimizer_share, otherwise=0.0)
    return (Cause("optimizer_for_loop", part, (optimizer_launches, optimizer_share)),)


RULE = Rule(Regime.LAUNCH, judge, FIRES_AT)
