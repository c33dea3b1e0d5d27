"""underfilled: kernels run that are too small to fill the device.

Signal: device time of kernels with fewer blocks than half of the multiprocessors, or shorter than 5 us, and the
device's own pauses between queued operations. If the trace has the device's counters, kernels in which less than
half of the multiprocessors have work count instead of kernels with few blocks.
Formula: that time / the window. Half of it counts as recoverable: a kernel that fills at most half of the
multiprocessors does twice the work in the same time if the batch is twice as large.
Threshold: fires at 30 % of the window.
Source: torch-tb-profiler's estimated SM efficiency is the same ratio of blocks to multiprocessors; from 30 % of the
window on, such kernels outweigh the other losses of a device-bound run.
"""

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.allocator.facts import fitting_batch
from tb_bottleneck.bottlenecks.compute.kernels import kernel_time, kernels, multiprocessors, underfilled_share
from tb_bottleneck.bottlenecks.rule_types import ABSTAINS, CLEAR, FIRES, Cause, Judgement, Rule
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.trace import Recording
from tb_bottleneck.measures.trace.hardware_counters import sm_active

FIRES_AT = 0.30
RECOVERABLE_OF_UNDERFILLED = 0.5


def judge(measures: Measures[Recording]) -> Judgement[Recording]:
    """Returns the judgement of `underfilled` for a trace. The cause is a small batch: a larger batch or fused kernels
    would fill the device."""
    share = measures.account.share(Regime.UNDERFILLED)
    if share < FIRES_AT:
        count = measures(multiprocessors)
        if measures.on_device and isinstance(count, Missing):
            return Judgement(ABSTAINS, share, missing=count.because)
        return Judgement(CLEAR, share)
    cause = Cause(
        "small_batch", share, (underfilled_share, sm_active, kernel_time, kernels, fitting_batch), bounded=False
    )
    return Judgement(FIRES, share, RECOVERABLE_OF_UNDERFILLED * share, (cause,))


RULE = Rule(Regime.UNDERFILLED, judge, FIRES_AT)
