"""allocator: the device is idle in calls that ask the driver for memory or give it back.

Signal: idle device time inside cudaMalloc, cudaFree, cudaHostAlloc and their kin.
Formula: that time / the window.
Threshold: fires at 3 % of the window.
Source: after warm-up the caching allocator serves every request itself (pytorch docs, notes on CUDA memory
management), so a healthy run spends nothing here; 3 % is the smallest cost worth a sentence.
"""

from tb_bottleneck.measures.hosting import driver_allocations
from tb_bottleneck.measures.measures import Measures
from tb_bottleneck.regimes.rule import Cause, Judgement, Rule, idle_judgement

FIRES_AT = 0.03


def judge(measures: Measures) -> Judgement:
    """Memory goes back to the driver and is asked for again: an emptied cache, or a card that is too full."""
    cause = Cause("empty_cache", measures.account.share("allocator"), (driver_allocations,))
    return idle_judgement(measures, "allocator", FIRES_AT, (cause,))


RULE = Rule("allocator", judge, FIRES_AT)
