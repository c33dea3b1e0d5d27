"""allocator by telemetry: memory is allocated from the driver and freed again in the middle of steps.

Signal: blocks allocated and freed per step after warm-up; idle time inside the phases of such steps.
Formula: idle time inside the phases of windows with at least 1 block per step / the time of the steps; this is an upper
limit.
Threshold: as for traces, or any allocation that had to be retried.
Source: bottlenecks/allocator/rule.py; pytorch docs, torch.cuda.memory_stats: num_alloc_retries counts failed calls of
cudaMalloc that result in a cache flush and a retry.
"""

from tb_bottleneck.base.measure import Missing
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.allocator.rule import FIRES_AT
from tb_bottleneck.bottlenecks.rule_types import ABSTAINS, CLEAR, FIRES, Cause, Judgement, Rule
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.telemetry import TelemetryRecording
from tb_bottleneck.measures.telemetry.host import (
    allocations_retried,
    blocks_allocated,
    blocks_freed,
    fp32_parameters,
    idle_inside_phases,
    peak_memory_share,
)

RETRIES = 0.01  # per step: one in a hundred steps is no longer warm-up


def judge(measures: Measures[TelemetryRecording]) -> Judgement[TelemetryRecording]:
    """Returns the judgement of `allocator` for telemetry. Retried allocations show that the memory is full. Without
    retries, the cause is that the program empties the cache."""
    share = measures.account.share(Regime.ALLOCATOR)
    blocks = measures(blocks_allocated)
    if isinstance(blocks, Missing):
        return Judgement(CLEAR if not measures.on_device else ABSTAINS, share, missing=blocks.because)
    if measures.value(allocations_retried, 0.0) >= RETRIES:
        shown = (allocations_retried, peak_memory_share, blocks_allocated, blocks_freed, fp32_parameters)
        full = Cause("memory_pressure", share, shown)
        return Judgement(FIRES, share, share, (full,))
    if share < FIRES_AT:
        return Judgement(CLEAR, share, share)
    emptied = Cause("empty_cache", share, (blocks_allocated, blocks_freed, idle_inside_phases))
    return Judgement(FIRES, share, share, (emptied,))


RULE = Rule(Regime.ALLOCATOR, judge, FIRES_AT)
