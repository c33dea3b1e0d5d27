"""allocator: the device is idle in calls that allocate memory from the driver or free it.

Signal: idle device time inside cudaMalloc, cudaFree, cudaHostAlloc and similar calls.
Formula: that time / the window.
Threshold: fires at 3 % of the window.
Source: after warm-up the caching allocator serves every request itself (pytorch docs, notes on CUDA memory
management), so a healthy run spends nothing here; 3 % is the smallest cost worth reporting. The caller that frees
memory shows the reason: torch.cuda.empty_cache() frees memory outside any operator. The allocator itself frees memory
only inside an operator, after a failed request (pytorch c10/cuda/CUDACachingAllocator.cpp, the order of attempts).
"""

from tb_bottleneck.base.regime import Regime
from tb_bottleneck.bottlenecks.allocator.facts import (
    cache_frees,
    driver_allocations,
    frees_under_pressure,
    pinned_allocations,
)
from tb_bottleneck.bottlenecks.compute.kernel_efficiency import fp32_products
from tb_bottleneck.bottlenecks.host.facts import runtime_calls
from tb_bottleneck.bottlenecks.rule_types import Cause, Judgement, Rule, idle_judgement
from tb_bottleneck.measures.measure_set import Measures
from tb_bottleneck.measures.trace import Recording

FIRES_AT = 0.03
# Frees matter if there are at least this many per allocation. Memory that is freed and allocated again is freed about
# as often as it is allocated; libraries only free a workspace now and then.
RETURNED_SHARE = 0.25


def judge(measures: Measures[Recording]) -> Judgement[Recording]:
    """Returns the judgement of `allocator` for a trace, with one cause if the rule fires: an emptied cache, full
    memory, pinned memory that is not reused, or growing sizes."""
    return idle_judgement(
        measures, Regime.ALLOCATOR, FIRES_AT, _causes, seen_by=runtime_calls if measures.on_device else None
    )


def _causes(measures: Measures[Recording]) -> tuple[Cause[Recording], ...]:
    """Returns one cause: the reason for driver allocations, as shown by the number and the callers of allocations and
    frees. Called only if the rule fires."""
    share = measures.account.share(Regime.ALLOCATOR)
    emptied, under_pressure, pinned, allocated = (
        measures.value(measure, otherwise=0.0)
        for measure in (cache_frees, frees_under_pressure, pinned_allocations, driver_allocations)
    )
    if emptied >= max(under_pressure, RETURNED_SHARE * allocated) > 0:
        return (Cause("empty_cache", share, (cache_frees, driver_allocations)),)
    if under_pressure >= RETURNED_SHARE * allocated > 0:
        return (Cause("memory_pressure", share, (frees_under_pressure, driver_allocations, fp32_products)),)
    if pinned > allocated:
        return (Cause("pinned_allocations", share, (pinned_allocations, driver_allocations)),)
    return (Cause("growing_memory", share, (driver_allocations, cache_frees)),)


RULE = Rule(Regime.ALLOCATOR, judge, FIRES_AT)
