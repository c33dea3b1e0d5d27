"""Work that differs between ranks from step to step, or between the stages of a pipeline."""

from collections.abc import Iterator

import numpy as np

from tb_bottleneck.jobs.causes.candidates import Candidate, expert_skew
from tb_bottleneck.jobs.causes.pipelines import uneven_microbatches, uneven_stages
from tb_bottleneck.jobs.causes.slow_ranks import MIN_EXPERT_SKEW, slow_devices
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.scenarios import even_work
from tb_bottleneck.jobs.summary.rank_summary import Own
from tb_bottleneck.trace.table import Floats, Ints

# The slowest rank of a step must compute longer than the mean of the ranks by at least this share of the step.
MIN_SPREAD = 0.03
# Smallest correlation at which the device time is said to follow the amount of work. Sequence lengths reach this
# correlation (OSDI'25, arXiv 2505.05713).
MIN_CORRELATION = 0.8


def imbalance(context: JobContext) -> Iterator[Candidate]:
    """Yields the candidates for uneven work: in a pipeline, between stages or between microbatches; otherwise, between
    ranks if a different rank has the most work in each step."""
    slow = slow_devices(context)
    ranks = np.setdiff1d(np.arange(len(context.job.summaries)), slow)
    if context.grid.stages > 1:
        yield from uneven_stages(context, slow)
        yield from uneven_microbatches(context)
    elif len(ranks) > 1 and context.own.by_step:
        yield from _ranks(context, ranks)


def _ranks(context: JobContext, ranks: Ints) -> Iterator[Candidate]:
    """Yields a candidate if the device times of `ranks` (positions) follow the amounts of work, and the longest device
    time of a step exceeds the mean by at least MIN_SPREAD of the step, as the mean over all steps."""
    device = context.own.own[ranks][:, :, Own.DEVICE]
    mean = np.nanmean(device, axis=0)
    spread = float(np.nanmean(np.nanmax(device, axis=0) - mean))
    correlation = _correlation(device, context.amounts[ranks])
    if spread < MIN_SPREAD * context.step_ns or correlation < MIN_CORRELATION:
        return
    skew = expert_skew(context)
    cause = "expert_imbalance" if skew >= MIN_EXPERT_SKEW else "data_imbalance"
    late = ranks[np.flatnonzero(np.bincount(np.nanargmax(device, axis=0), minlength=len(ranks)))]
    facts = {"spread_ns": spread, "correlation": correlation, "skew": skew}
    yield Candidate(cause, late, even_work, facts)


def _correlation(device: Floats, work: Floats) -> float:
    """Returns the correlation of device time and amount of work, each minus its mean over the ranks in the step.

    `device` (ns) and `work` have the shape (ranks, steps). Returns 1 if the amounts are not known, because the
    differences between the device times are then the only evidence. Returns 0 if the device time or the amount of work
    does not vary.
    """
    if np.isnan(work).all() or device.shape != work.shape:
        return 1.0
    a, b = (device - np.nanmean(device, axis=0)).ravel(), (work - np.nanmean(work, axis=0)).ravel()
    known = ~(np.isnan(a) | np.isnan(b))
    if np.std(b[known]) == 0 or np.std(a[known]) == 0:
        return 0.0
    return float(np.corrcoef(a[known], b[known])[0, 1])
