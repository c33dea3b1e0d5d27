"""unexplained by telemetry: time of other processes, idle time that a trace has to explain, work of a kind unknown.

Signal: utilisation by other processes; idle time inside the phases of steps that wait; idle time without step columns.
Formula: what no other regime owns / the time of the steps.
Threshold: as for traces; a cause is named from 10 % of the time on.
Source: regimes/unexplained.py; 10 % is traceml's warning level for an overhead of the step.
"""

from tb_bottleneck.measure import Measure
from tb_bottleneck.measures.measure_set import Measures, TelemetryRecording
from tb_bottleneck.measures.telemetry.device_utilisation import (
    other_processes,
    other_processes_utilisation,
    own_work,
    utilisation,
)
from tb_bottleneck.measures.telemetry.input_pipeline import device_idle, utilisation_deviation
from tb_bottleneck.measures.telemetry.step_phases import host_waits, idle_inside_phases, phase_time
from tb_bottleneck.regime import Regime
from tb_bottleneck.regimes.rule import CLEAR, FIRES, Cause, Judgement, Rule
from tb_bottleneck.regimes.unexplained import FIRES_AT

MIN_CAUSE_SHARE = 0.10


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """Idle time and other tenants' time could be had back; work whose bound is not known is no loss."""
    share = measures.account.share(Regime.UNEXPLAINED)
    causes = []
    others = measures.value(other_processes_utilisation, 0.0)
    if others >= MIN_CAUSE_SHARE:
        tenants = (other_processes_utilisation, other_processes, utilisation)
        causes.append(Cause("other_tenant", min(others, share), tenants))
    idle = measures(device_idle)
    other_idle = idle.value - _told_idle(measures) if isinstance(idle, Measure) else 0.0
    inside = min(measures.value(idle_inside_phases, 0.0), share)
    if inside >= MIN_CAUSE_SHARE:
        seen = (idle_inside_phases, host_waits, phase_time, utilisation)
        causes.append(Cause("waits_or_launches", inside, seen, bounded=False))
    elif other_idle >= MIN_CAUSE_SHARE:
        readings = (device_idle, utilisation, utilisation_deviation)
        causes.append(Cause("idle_without_steps", min(other_idle, share), readings, bounded=False))
    at_stake = sum(cause.cost_share for cause in causes)
    status = FIRES if causes or share >= FIRES_AT else CLEAR
    return Judgement(status, share, min(at_stake, share), tuple(causes), (own_work,))


def _told_idle(measures: Measures[TelemetryRecording]) -> float:
    """Idle time that has an owner."""
    owners = (Regime.INPUT, Regime.TRANSFER, Regime.LAUNCH, Regime.HOST, Regime.ALLOCATOR, Regime.INTERRUPTION)
    return sum(measures.account.share(regime) for regime in owners)


RULE = Rule(Regime.UNEXPLAINED, judge, FIRES_AT)
