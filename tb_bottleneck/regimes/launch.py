"""launch: the device is idle while torch dispatches operators and launches kernels.

Signal: idle device time while the launching thread is in operators, runtime calls or the short pauses between them.
Formula: that time / the window. Half of it counts as recoverable: while it records, the profiler slows the dispatching
host 1.6 to 2.1 times, so up to half of what is seen is the profiler's own.
Threshold: fires at 10 % of the window.
Source: 10 %: traceml's warning level for overheads (diagnostics/step_time/policy.py); 1.6 to 2.1: measured on torch
2.13 with 80 small layers, every combination of the profiler's options against none.
"""

from tb_bottleneck.measures.fusing import optimizer_launches, optimizer_share
from tb_bottleneck.measures.hosting import operators, time_per_launch
from tb_bottleneck.measures.measures import Measures
from tb_bottleneck.measures.working import kernel_time, kernels
from tb_bottleneck.regimes.rule import Cause, Judgement, Rule, idle_judgement

FIRES_AT = 0.10
RECOVERABLE = 0.5
# A foreach or fused optimizer launches a handful of kernels per step, one that loops several for each parameter;
# torch's foreach has been the default on CUDA since 2.0.
LOOPING_LAUNCHES = 100


def judge(measures: Measures) -> Judgement:
    """Small kernels: the device finishes each one before the host has launched the next. On a CPU run, operators."""
    share = measures.account.share("launch")
    if measures.on_device:
        causes = [Cause("small_kernels", share, (kernels, kernel_time, time_per_launch, operators))]
        if measures.value(optimizer_launches, otherwise=0.0) >= LOOPING_LAUNCHES:
            part = share * measures.value(optimizer_share, otherwise=0.0)
            causes.append(Cause("optimizer_for_loop", part, (optimizer_launches, optimizer_share)))
    else:
        causes = [Cause("small_operators", share, (operators,))]
    return idle_judgement(measures, "launch", FIRES_AT, tuple(causes), RECOVERABLE)


RULE = Rule("launch", judge, FIRES_AT)
