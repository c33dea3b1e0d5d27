"""communication by telemetry: clear for one process; otherwise collectives are not visible in telemetry.

Signal: the number of processes.
Formula: none.
Threshold: as for traces, never reached.
Source: regimes/communication.py; collectives run on the device in parallel with other kernels, and only a trace
distinguishes them.
"""

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.telemetry.step_phases import world_size
from tb_bottleneck.regimes.communication import FIRES_AT
from tb_bottleneck.regimes.rule import ABSTAINS, CLEAR, Judgement, Rule


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """Returns the judgement of `communication` for telemetry: clear for one process. Abstains for several processes, or
    if their number is not known."""
    processes = measures(world_size)
    if isinstance(processes, Missing):
        return Judgement(ABSTAINS, 0.0, missing=processes.because)
    if processes.value > 1:
        return Judgement(ABSTAINS, 0.0, missing="collectives are visible only in traces")
    return Judgement(CLEAR, 0.0)


RULE = Rule(Regime.COMMUNICATION, judge, FIRES_AT)
