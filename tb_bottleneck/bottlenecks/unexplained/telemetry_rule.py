"""unexplained by telemetry: time of other processes, idle time that needs a trace, and work of unknown kind.

Signal: utilisation by other processes; idle time inside the phases of steps in which the host waits; idle time without
recorded phases.
Formula: time that no other regime owns / the time of the steps.
Threshold: as for traces; a cause is reported from 10 % of the time on. Work of unknown kind, and time inside a step
that no signal shows, are no problem: the rule abstains.
Source: bottlenecks/unexplained/rule.py; 10 % is traceml's warning level for an overhead of the step.
"""

from tb_bottleneck.base.measure import Measure
from tb_bottleneck.base.regime import AVOIDABLE_REGIMES, Regime
from tb_bottleneck.bottlenecks.input.pipeline import device_idle, utilisation_deviation
from tb_bottleneck.bottlenecks.recoverable import unexplained_idle
from tb_bottleneck.bottlenecks.rule_types import ABSTAINS, CLEAR, FIRES, Cause, Judgement, Rule
from tb_bottleneck.bottlenecks.unexplained.rule import FIRES_AT
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.telemetry.device import other_processes, other_processes_utilisation, own_work, utilisation
from tb_bottleneck.measures.telemetry.host import host_waits, idle_inside_phases, phase_time, timed_phases

MIN_CAUSE_SHARE = 0.10
_INSIDE = "telemetry sees a step only from outside; a trace of a few steps shows what it consists of"


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """Returns the judgement of `unexplained` for telemetry. A fix could save idle time and the time of other processes,
    but not work of unknown kind."""
    share = measures.account.share(Regime.UNEXPLAINED)
    causes = []
    others = measures.value(other_processes_utilisation, 0.0)
    if others >= MIN_CAUSE_SHARE:
        tenants = (other_processes_utilisation, other_processes, utilisation)
        causes.append(Cause("other_tenant", min(others, share), tenants))
    idle = measures(device_idle)
    other_idle = idle.value - _explained_idle(measures) if isinstance(idle, Measure) else 0.0
    inside = min(measures.value(idle_inside_phases, 0.0), share)
    if inside >= MIN_CAUSE_SHARE:
        phases = (idle_inside_phases, host_waits, phase_time, timed_phases, utilisation)
        causes.append(Cause("waits_or_launches", inside, phases, bounded=False))
    elif other_idle >= MIN_CAUSE_SHARE:
        readings = (device_idle, utilisation, utilisation_deviation)
        causes.append(Cause("idle_without_steps", min(other_idle, share), readings, bounded=False))
    at_stake = sum(cause.cost_share for cause in causes)
    if causes or measures.value(unexplained_idle, 0.0) >= FIRES_AT:
        return Judgement(FIRES, share, min(at_stake, share), tuple(causes), (own_work,))
    if share >= FIRES_AT:
        return Judgement(ABSTAINS, share, min(at_stake, share), (), (own_work,), missing=_INSIDE)
    return Judgement(CLEAR, share, min(at_stake, share), (), (own_work,))


def _explained_idle(measures: Measures[TelemetryRecording]) -> float:
    """Returns the share (0 to 1) of the window that the avoidable regimes own."""
    return sum(measures.account.share(regime) for regime in AVOIDABLE_REGIMES)


RULE = Rule(Regime.UNEXPLAINED, judge, FIRES_AT)
