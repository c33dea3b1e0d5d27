"""transfer by telemetry: copies between host and device run while the device has no other work.

Signal: host time in calls that move tensors, limited to the idle time of the device and to the time that the link's
traffic can take; the link's generation and lanes while the device is loaded.
Formula: min(time in copies, idle time, time of the traffic) / the time of the steps. At most, all of the host time in
copies is saved: the driver counts a copying device as busy.
Threshold: as for traces. The link is a cause if its speed is 10 % or more below the highest speed of this GPU in this
slot. The slot is a cause if its highest rate is 10 % or more below the GPU's own highest rate, and either copies reach
the threshold or the slot has fewer lanes than the GPU.
Source: bottlenecks/transfer/rule.py; NVML's documentation of MaxPcieLinkGeneration: an idle link slows down by itself,
so only loaded readings count. The speed of a link changes by a factor of two at least, so 10 % is only a margin for
rounding.
"""

from tb_bottleneck.base.measure import Measure, Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.input.pipeline import device_idle
from tb_bottleneck.bottlenecks.rule_types import ABSTAINS, CLEAR, FIRES, Cause, Judgement, Rule
from tb_bottleneck.bottlenecks.transfer.link import (
    link_reached,
    link_speed,
    link_traffic,
    pinning,
    slot_lanes,
    slot_limit,
    transfer_time,
)
from tb_bottleneck.bottlenecks.transfer.rule import FIRES_AT
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.telemetry.host import step_time

DEGRADED = 0.10


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """Returns the judgement of `transfer` for telemetry. A degraded link, or a slot with fewer lanes than the device,
    is a cause even if copies cost little: both are defects of the machine."""
    share = measures.account.share(Regime.TRANSFER)
    reached = measures(link_reached)
    degraded = isinstance(reached, Measure) and reached.value <= 1.0 - DEGRADED
    causes = []
    if degraded and isinstance(reached, Measure):
        causes.append(Cause("degraded_link", share * (1.0 - reached.value), (link_speed, transfer_time, link_traffic)))
    for needed in (transfer_time, device_idle):
        signal = measures(needed)
        if isinstance(signal, Missing) and not causes:
            return Judgement(ABSTAINS, share, missing=signal.because)
    limit, narrow = measures.value(slot_limit, 1.0), measures.value(slot_lanes, 1.0) <= 1.0 - DEGRADED
    if not degraded and limit <= 1.0 - DEGRADED and (share >= FIRES_AT or narrow):
        lost = share * (1.0 - limit)
        causes.append(Cause("slow_slot", lost, (link_speed, transfer_time, link_traffic)))
    if share >= FIRES_AT:
        most = max(share, measures.value(transfer_time, 0.0) / max(measures.value(step_time, 1.0), 1.0))
        causes.append(Cause("exposed_copies", share, (transfer_time, link_traffic, link_speed, pinning), most=most))
    return Judgement(FIRES if causes else CLEAR, share, share, tuple(causes))


RULE = Rule(Regime.TRANSFER, judge, FIRES_AT)
