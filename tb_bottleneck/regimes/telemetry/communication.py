"""communication by telemetry: nothing of it is seen but in a run of one process, which has none.

Signal: the number of processes.
Formula: none.
Threshold: as for traces, never reached.
Source: regimes/communication.py; collectives run on the device beside other kernels, and only a trace tells them apart.
"""

from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.measure_set import Measures, TelemetryRecording
from tb_bottleneck.measures.telemetry.ranks import world_size
from tb_bottleneck.regime import Regime
from tb_bottleneck.regimes.communication import FIRES_AT
from tb_bottleneck.regimes.rule import ABSTAINS, CLEAR, Judgement, Rule


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """Clear for one process; for several, a trace has to tell."""
    known = measures(world_size)
    if isinstance(known, Missing):
        return Judgement(ABSTAINS, 0.0, missing=known.because)
    if isinstance(known, Measure) and known.value > 1:
        return Judgement(ABSTAINS, 0.0, missing="collectives are seen in traces only")
    return Judgement(CLEAR, 0.0)


RULE = Rule(Regime.COMMUNICATION, judge, FIRES_AT)
