"""launch by telemetry: the device is idle inside forward, backward and optimizer, and the host does not wait.

Signal: in steps without waits of the host, the device's idle time that loader, copies and Python outside the phases
do not explain.
Formula: that time / the time of the steps.
Threshold: as for traces; all of the time counts as recoverable, because no profiler slows the launches. At most, a
CUDA graph also saves the Python of the step and half of the time of small kernels: the driver counts pauses between
kernels as busy. On an
H200, the utilisation was 1.6 times the time of a step's kernels in a graph.
Source: bottlenecks/launch/rule.py.
"""

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.input.pipeline import device_idle
from tb_bottleneck.bottlenecks.launch.rule import FIRES_AT
from tb_bottleneck.bottlenecks.rule_types import ABSTAINS, CLEAR, FIRES, Cause, Judgement, Rule
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.telemetry.device import process_cores, utilisation
from tb_bottleneck.measures.telemetry.host import host_waits, idle_inside_phases, phase_time, timed_phase_count

SHORTER = 0.5


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """Returns the judgement of `launch` for telemetry. Abstains on a CPU run, or without the utilisation of the device:
    only the utilisation shows gaps between kernels."""
    share = measures.account.share(Regime.LAUNCH)
    if not measures.on_device:
        return Judgement(
            ABSTAINS, share, missing="on a CPU, only a trace distinguishes dispatching from the work of operators"
        )
    for needed in (timed_phase_count, device_idle, utilisation):
        signal = measures(needed)
        if isinstance(signal, Missing):
            return Judgement(ABSTAINS, share, missing=signal.because)
    if share >= FIRES_AT:
        in_graph = measures.account.share(Regime.HOST) + SHORTER * measures.account.share(Regime.UNDERFILLED)
        evidence = (phase_time, utilisation, host_waits, process_cores)
        cause = Cause("small_kernels", share, evidence, most=share + in_graph)
        return Judgement(FIRES, share, share, (cause,))
    if measures.value(idle_inside_phases, 0.0) >= FIRES_AT:
        return Judgement(ABSTAINS, share, missing="only a trace distinguishes launches from waits")
    return Judgement(CLEAR, share, share)


RULE = Rule(Regime.LAUNCH, judge, FIRES_AT)
