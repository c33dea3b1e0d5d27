"""memory by telemetry: the limit of the device's own work, by its counters.

Signal: memory bandwidth and arithmetic units in use (profiling counters), or else power and memory activity.
Formula: time at a limit = the counter / its value for kernels at this limit.
Threshold: as for traces; abstains if no counter was recorded.
Source: bottlenecks/memory/rule.py; the sources of the figures are in attribution/telemetry/window_accounts.py.
"""

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.memory import rule as memory
from tb_bottleneck.bottlenecks.rule_types import ABSTAINS, CLEAR, FIRES, Judgement, Rule
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.telemetry.device import bandwidth_used, bound_known, bound_source, memory_accessed


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """Returns the judgement of `memory` for telemetry, without causes: only a trace shows kernels that could be
    fused."""
    share = measures.account.share(Regime.MEMORY)
    bound = measures(bound_known)
    if isinstance(bound, Missing):
        return Judgement(ABSTAINS, share, missing=bound.because)
    evidence = (bandwidth_used, memory_accessed, bound_source)
    return Judgement(FIRES if share >= memory.FIRES_AT else CLEAR, share, evidence=evidence)


RULE = Rule(Regime.MEMORY, judge, memory.FIRES_AT)
