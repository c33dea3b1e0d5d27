"""underfilled by telemetry: the device is busy, but neither its arithmetic units nor its memory bandwidth are in use.

Signal: memory bandwidth and arithmetic units in use (profiling counters), or else power and memory activity.
Formula: busy time - time at a limit (the counter / its value for kernels at this limit). Half of it counts as
recoverable, as for traces. If SM activity (the share of multiprocessors with work) is below 50 %, the part
(1 - SM activity) counts instead, which bounds what a larger batch saves per sample. A higher activity does not show how
full the multiprocessors are.
Threshold: as for traces; abstains if no counter was recorded.
Source: bottlenecks/underfilled/rule.py; the sources of the figures are in attribution/telemetry/window_accounts.py.
"""

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.rule_types import ABSTAINS, CLEAR, FIRES, Cause, Judgement, Rule
from tb_bottleneck.bottlenecks.underfilled import rule as underfilled
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.telemetry.device import (
    bandwidth_used,
    bound_known,
    bound_source,
    mean_power_share,
    multiprocessors_used,
    tensor_cores_used,
)

# Below this SM activity, the activity shows the recoverable part. The same limit holds for the blocks of a kernel in a
# trace (roofline/kernel_bounds.py).
FEW_ACTIVE = 0.5


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """Returns the judgement of `underfilled` for telemetry: the device is busy, but neither arithmetic nor bandwidth is
    in use. The cause is a small batch."""
    share = measures.account.share(Regime.UNDERFILLED)
    bound = measures(bound_known)
    if isinstance(bound, Missing):
        return Judgement(ABSTAINS, share, missing=bound.because)
    if share < underfilled.FIRES_AT:
        return Judgement(CLEAR, share)
    evidence = (multiprocessors_used, tensor_cores_used, bandwidth_used, mean_power_share, bound_source)
    used = measures.value(multiprocessors_used, otherwise=1.0)
    bounded = used < FEW_ACTIVE
    part = 1.0 - used if bounded else underfilled.RECOVERABLE_OF_UNDERFILLED
    return Judgement(FIRES, share, part * share, (Cause("small_batch", share, evidence, bounded=bounded),))


RULE = Rule(Regime.UNDERFILLED, judge, underfilled.FIRES_AT)
