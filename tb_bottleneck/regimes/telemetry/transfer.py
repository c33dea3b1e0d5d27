"""transfer by telemetry: copies between host and device run while the device has nothing else to do.

Signal: host time in calls that move tensors, as far as the device idles and the link's traffic allows; the link's
generation and lanes while the device is loaded.
Formula: min(time in copies, idle time, what the traffic can have taken) / the time of the steps.
Threshold: as for traces; a link is named from 10 % below what this GPU in this slot could run at.
Source: regimes/transfer.py; NVML's documentation of MaxPcieLinkGeneration: an idle link slows down by itself, so only
loaded readings count. A link has steps of a half at the least, so 10 % is no more than rounding.
"""

from tb_bottleneck.measure import Measure, Missing
from tb_bottleneck.measures.measure_set import Measures, TelemetryRecording
from tb_bottleneck.measures.telemetry.input_pipeline import device_idle
from tb_bottleneck.measures.telemetry.pcie_link import link_reached, link_speed, link_traffic, transfer_time
from tb_bottleneck.regime import Regime
from tb_bottleneck.regimes.rule import ABSTAINS, CLEAR, FIRES, Cause, Judgement, Rule
from tb_bottleneck.regimes.transfer import FIRES_AT

DEGRADED = 0.10


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """A degraded link is named even where copies cost little now: it is a defect of the machine."""
    share = measures.account.share(Regime.TRANSFER)
    reached = measures(link_reached)
    degraded = isinstance(reached, Measure) and reached.value <= 1.0 - DEGRADED
    causes = []
    if degraded and isinstance(reached, Measure):
        causes.append(Cause("degraded_link", share * (1.0 - reached.value), (link_speed, transfer_time, link_traffic)))
    for needed in (transfer_time, device_idle):
        seen = measures(needed)
        if isinstance(seen, Missing) and not causes:
            return Judgement(ABSTAINS, share, missing=seen.because)
    if share >= FIRES_AT:
        causes.append(Cause("exposed_copies", share, (transfer_time, link_traffic, link_speed)))
    return Judgement(FIRES if causes else CLEAR, share, share, tuple(causes))


RULE = Rule(Regime.TRANSFER, judge, FIRES_AT)
