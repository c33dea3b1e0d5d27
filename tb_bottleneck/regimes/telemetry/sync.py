"""sync by telemetry: whether the host waits for the device, not what it costs.

Signal: counted waits, and time that the device idles inside the phases of a step.
Formula: none: a wait behind a busy device costs nothing, and only a trace tells which idle time follows one.
Threshold: as for traces, for the idle time that waits and launches share; below it no wait can have cost more.
Source: regimes/sync.py.
"""

from tb_bottleneck.measure import Missing
from tb_bottleneck.measures.measure_set import Measures, TelemetryRecording
from tb_bottleneck.measures.telemetry.device_utilisation import utilisation
from tb_bottleneck.measures.telemetry.input_pipeline import device_idle
from tb_bottleneck.measures.telemetry.step_phases import idle_inside_phases
from tb_bottleneck.regime import Regime
from tb_bottleneck.regimes.rule import ABSTAINS, CLEAR, Judgement, Rule
from tb_bottleneck.regimes.sync import FIRES_AT


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """Never fires: see the formula."""
    for needed in (device_idle, utilisation):
        seen = measures(needed)
        if measures.on_device and isinstance(seen, Missing):
            return Judgement(ABSTAINS, 0.0, missing=seen.because)
    if measures.value(idle_inside_phases, 0.0) >= FIRES_AT:
        return Judgement(ABSTAINS, 0.0, missing="which part of the idle time follows a wait, a trace tells")
    return Judgement(CLEAR, 0.0)


RULE = Rule(Regime.SYNC, judge, FIRES_AT)
