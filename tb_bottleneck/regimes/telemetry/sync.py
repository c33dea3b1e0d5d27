"""sync by telemetry: the host may wait for the device; the cost of the waits is not visible in telemetry.

Signal: counted waits, and idle device time inside the phases of a step.
Formula: none: a wait while the device is busy costs nothing, and only a trace shows the idle time after a wait.
Threshold: as for traces, for the idle time of waits and launches together: waits alone cannot take longer than both.
Source: regimes/sync.py.
"""

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.telemetry.device import utilisation
from tb_bottleneck.measures.telemetry.input_pipeline import device_idle
from tb_bottleneck.measures.telemetry.step_phases import idle_inside_phases
from tb_bottleneck.regimes.rule import ABSTAINS, CLEAR, Judgement, Rule
from tb_bottleneck.regimes.sync import FIRES_AT


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """Returns the judgement of `sync` for telemetry. The rule never fires, because telemetry does not show the cost of
    waits. The rule is clear if the idle time inside the phases of a step is below FIRES_AT, otherwise it abstains."""
    for needed in (device_idle, utilisation):
        signal = measures(needed)
        if measures.on_device and isinstance(signal, Missing):
            return Judgement(ABSTAINS, 0.0, missing=signal.because)
    if measures.value(idle_inside_phases, 0.0) >= FIRES_AT:
        return Judgement(ABSTAINS, 0.0, missing="only a trace shows which part of the idle time follows a wait")
    return Judgement(CLEAR, 0.0)


RULE = Rule(Regime.SYNC, judge, FIRES_AT)
