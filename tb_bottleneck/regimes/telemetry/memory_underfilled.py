"""memory and underfilled by telemetry: what bounds the device's own work, as its counters tell it.

Signal: memory bandwidth and arithmetic units in use (profiling counters); else power and memory activity.
Formula: time at a roof = the counter / what kernels that are bound by it reach; the rest of the work is underfilled.
Threshold: as for traces; abstains where no counter tells.
Source: regimes/memory.py, regimes/underfilled.py; attribution/telemetry/device_bound.py has the sources of the figures.
"""

from tb_bottleneck.measure import Missing
from tb_bottleneck.measures.measure_set import Measures, TelemetryRecording
from tb_bottleneck.measures.telemetry.device_utilisation import (
    bandwidth_used,
    bound_known,
    bound_source,
    mean_power_share,
    memory_accessed,
    multiprocessors_used,
    tensor_cores_used,
)
from tb_bottleneck.regime import Regime
from tb_bottleneck.regimes import memory, underfilled
from tb_bottleneck.regimes.rule import ABSTAINS, CLEAR, FIRES, Cause, Judgement, Rule


def judge_memory(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """Which kernels could be fused, a trace tells."""
    share = measures.account.share(Regime.MEMORY)
    told = measures(bound_known)
    if isinstance(told, Missing):
        return Judgement(ABSTAINS, share, missing=told.because)
    evidence = (bandwidth_used, memory_accessed, bound_source)
    return Judgement(FIRES if share >= memory.FIRES_AT else CLEAR, share, evidence=evidence)


def judge_underfilled(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """A device that is always busy and neither computes nor streams runs kernels that do not fill it."""
    share = measures.account.share(Regime.UNDERFILLED)
    told = measures(bound_known)
    if isinstance(told, Missing):
        return Judgement(ABSTAINS, share, missing=told.because)
    if share < underfilled.FIRES_AT:
        return Judgement(CLEAR, share)
    evidence = (multiprocessors_used, tensor_cores_used, bandwidth_used, mean_power_share, bound_source)
    return Judgement(FIRES, share, causes=(Cause("small_batch", share, evidence, bounded=False),))


MEMORY = Rule(Regime.MEMORY, judge_memory, memory.FIRES_AT)
UNDERFILLED = Rule(Regime.UNDERFILLED, judge_underfilled, underfilled.FIRES_AT)
