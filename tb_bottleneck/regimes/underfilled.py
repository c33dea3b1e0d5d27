"""underfilled: kernels run that are too small to fill the device.

Signal: device time of kernels with fewer blocks than half of the multiprocessors, or shorter than 5 us, and the
device's own pauses between queued operations.
Formula: that time / the window.
Threshold: fires at 30 % of the window.
Source: torch-tb-profiler's estimated SM efficiency is the same ratio of blocks to multiprocessors; at 30 % of the
window such kernels outweigh what a device-bound run loses elsewhere.
"""

from tb_bottleneck.measure import Missing
from tb_bottleneck.measures.measure_set import Measures, Recording
from tb_bottleneck.measures.trace.kernels import kernel_time, kernels, multiprocessors, underfilled_share
from tb_bottleneck.regime import Regime
from tb_bottleneck.regimes.rule import ABSTAINS, CLEAR, FIRES, Cause, Judgement, Rule

FIRES_AT = 0.30


def judge(measures: Measures[Recording]) -> Judgement[Recording]:
    """A bigger batch or fused kernels would fill the device; by how much takes a replay, so no gain is stated."""
    share = measures.account.share(Regime.UNDERFILLED)
    if share < FIRES_AT:
        known = measures(multiprocessors)
        if measures.on_device and isinstance(known, Missing):
            return Judgement(ABSTAINS, share, missing=known.because)
        return Judgement(CLEAR, share)
    cause = Cause("small_batch", share, (underfilled_share, kernel_time, kernels), bounded=False)
    return Judgement(FIRES, share, causes=(cause,))


RULE = Rule(Regime.UNDERFILLED, judge, FIRES_AT)
