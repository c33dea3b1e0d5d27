"""Work that differs between ranks from step to step, and between the stages of a pipeline."""

from collections.abc import Iterator

import numpy as np

from tb_bottleneck.jobs.causes.candidate import Candidate
from tb_bottleneck.jobs.causes.slow_ranks import MIN_EXPERT_SKEW, slow_devices
from tb_bottleneck.jobs.causes.work_amounts import expert_skew
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.own_table import lower_median
from tb_bottleneck.jobs.scenarios import even_stages, even_work, microbatch_classes
from tb_bottleneck.jobs.summary.rank_summary import Own
from tb_bottleneck.trace.table import Floats, Ints

# The slowest rank of a step computes longer than the mean by this share of the step.
MIN_SPREAD = 0.03
# Device time that follows the amount of work: the correlation that sequence lengths reach (OSDI'25, arXiv 2505.05713).
MIN_CORRELATION = 0.8
# Stages that differ by less are balanced as well as whole layers allow.
MIN_STAGE_RATIO = 1.05
# Relative standard deviation of the microbatches of a stage: kernels of equal work vary by some percent.
MIN_MICROBATCH_SPREAD = 0.08


def imbalance(context: JobContext) -> Iterator[Candidate]:
    """Yields the candidates."""
    slow = slow_devices(context)
    ranks = np.setdiff1d(np.arange(len(context.job.summaries)), slow)
    if context.grid.stages > 1:
        yield from _stages(context, slow)
        yield from _microbatches(context)
    elif len(ranks) > 1 and context.own.by_step:
        yield from _ranks(context, ranks)


def _ranks(context: JobContext, ranks: Ints) -> Iterator[Candidate]:
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
    """Returns the correlation of device time with the amount of work, each relative to its step; 1 if the amount is not
    known: device time that varies with the step and not with the rank is then the only sign."""
    if np.isnan(work).all() or device.shape != work.shape:
        return 1.0
    a, b = (device - np.nanmean(device, axis=0)).ravel(), (work - np.nanmean(work, axis=0)).ravel()
    known = ~(np.isnan(a) | np.isnan(b))
    if np.std(b[known]) == 0 or np.std(a[known]) == 0:
        return 0.0
    return float(np.corrcoef(a[known], b[known])[0, 1])


def _stages(context: JobContext, slow: Ints) -> Iterator[Candidate]:
    device = np.nanmedian(context.own.own[:, :, Own.DEVICE], axis=1)
    usual = np.zeros(context.grid.stages)
    for stage in range(context.grid.stages):
        members = np.flatnonzero(context.grid.stage == stage)
        others = np.setdiff1d(members, slow)
        usual[stage] = lower_median(device[others if len(others) else members])
    if usual.mean() <= 0 or usual.max() / usual.mean() < MIN_STAGE_RATIO:
        return
    slowest = int(usual.argmax())
    members = np.flatnonzero(context.grid.stage == slowest)
    facts = {"stage": float(slowest), "stage_ratio": float(usual.max() / usual.mean())}
    yield Candidate("stage_imbalance", members, lambda changed, of: even_stages(changed, of, usual), facts)


def _microbatches(context: JobContext) -> Iterator[Candidate]:
    points = context.graph.points
    device, classes = points.own[:, Own.DEVICE], microbatch_classes(context)
    used = np.flatnonzero((classes >= 0) & (device > 0))
    if not len(used):
        return
    _, of_rank = np.unique(classes[used] * len(context.job.summaries) + points.rank[used], return_inverse=True)
    count, total = np.bincount(of_rank), np.bincount(of_rank, weights=device[used])
    mean = total / count
    deviation = np.sqrt(np.maximum(np.bincount(of_rank, weights=device[used] ** 2) / count - mean**2, 0.0))
    spread = float((deviation * count).sum() / total.sum())
    if spread >= MIN_MICROBATCH_SPREAD:
        everyone = np.arange(len(context.job.summaries))
        yield Candidate("data_imbalance", everyone, even_work, {"microbatch_spread": spread})
