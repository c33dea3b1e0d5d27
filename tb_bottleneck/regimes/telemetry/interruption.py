"""interruption by telemetry: steps are much longer than their neighbours, and the device has no work.

Signal: steps more than three times as long as the median of their window, or every k-th step if it does the same work
in twice the time; without the loader's wait and the device's own work.
Formula: sum of the time by which they exceed the others / the time of the steps.
Threshold: as for traces; abstains below 20 steps, and if it is not known whether the device works within a step, since
an interruption in every step would not show.
Source: regimes/interruption.py; three times the median is the limit for outliers in traces, too; 20 steps are traceml's
minimum for a confident verdict (diagnostics/step_time/policy.py).
"""

from tb_bottleneck.measure import Missing
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.telemetry.input_pipeline import device_idle
from tb_bottleneck.measures.telemetry.step_phases import (
    long_step_excess,
    long_step_period,
    long_steps,
    step_time,
)
from tb_bottleneck.regime import Regime
from tb_bottleneck.regimes.interruption import FIRES_AT
from tb_bottleneck.regimes.rule import ABSTAINS, CLEAR, FIRES, Cause, Judgement, Rule

MIN_STEPS_TO_COMPARE = 20


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """Return the judgement. The kind of interruption is not known; a steady period suggests checkpoints or logging."""
    share = measures.account.share(Regime.INTERRUPTION)
    if measures.steps < MIN_STEPS_TO_COMPARE:
        return Judgement(
            ABSTAINS, share, missing=f"fewer than {MIN_STEPS_TO_COMPARE} steps are too few to recognise a long one"
        )
    if share < FIRES_AT:
        idle = measures(device_idle)
        if isinstance(idle, Missing):
            missing = f"each step may contain an interruption, and their parts are not known ({idle.because})"
            return Judgement(ABSTAINS, share, share, missing=missing)
        return Judgement(CLEAR, share, share)
    evidence = (long_steps, long_step_excess, long_step_period, step_time)
    return Judgement(FIRES, share, share, (Cause("periodic_pauses", share, evidence),))


RULE = Rule(Regime.INTERRUPTION, judge, FIRES_AT)
