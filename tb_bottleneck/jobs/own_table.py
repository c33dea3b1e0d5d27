"""The own time of each rank by step and kind, compared with that of its peers, and the work that explains the time.

Own time is time without waiting for other ranks. The peers of a rank are the ranks of the same stage. If a rank is the
only rank of its stage, its peers are all ranks, but only for what all stages do alike: host time, waiting for data,
interruptions, and kernels of equal size.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tb_bottleneck.base.stragglers import lower_median
from tb_bottleneck.jobs.group_kinds import Grid
from tb_bottleneck.jobs.pairing.job_table import JobTable
from tb_bottleneck.jobs.replay.waits import RankPoints
from tb_bottleneck.jobs.summary.rank_summary import Own
from tb_bottleneck.trace.table import Floats, Ints

# With fewer than MIN_STEPS steps, the table has BLOCKS blocks of communications instead of steps, if each rank starts
# at least MIN_STARTS communications. To name a rank, 5 steps or 20 collectives are needed.
MIN_STEPS, MIN_STARTS, BLOCKS = 4, 20, 8
_ALIKE = np.isin(np.arange(len(Own)), (Own.INPUT, Own.HOST, Own.INTERRUPTION, Own.OTHER))
"""Mask of the kinds of own time (time without waiting) that do not depend on the layers of a stage."""

MIN_SLOWER_KERNELS = 0.05
"""A device is slow if the same kernels take longer by this share, which exceeds the spread of boards (about 2 %)."""

MIN_COMMON_KERNELS, MAX_COMPARED = 2, 64
MIN_ALONE_KERNELS, MIN_ALIKE = 3, 0.5
"""A slow device can be distinguished from a stage with more work if at least MIN_ALONE_KERNELS kernels are compared,
and the slowdown of each kernel is at least MIN_ALIKE times their median slowdown. Both are chosen."""


@dataclass(frozen=True, eq=False)
class OwnTable:
    """The own time (time without waiting for other ranks) of all recorded ranks.

    `own` is the own time in ns, of shape (ranks, steps, kinds); NaN in steps that a rank did not record. `usual` is the
    usual own time of the rank's stage, with the same shape and unit: the lower median over the ranks of the stage
    (base/own_time.py). For the only rank of a stage, see _usual. `step` has one value for each point of RankPoints: the
    index of the point's step on the second axis. If `by_step` is False, the second axis has blocks of communications
    instead of steps.
    """

    own: Floats
    usual: Floats
    step: Ints
    by_step: bool

    @cached_property
    def excess(self) -> Floats:
        """Own time minus the usual own time (time without waiting) of the peers in ns, of shape (ranks, steps,
        kinds)."""
        return self.own - self.usual

    @cached_property
    def typical(self) -> Floats:
        """Own time in a typical step in ns, of shape (ranks, kinds)."""
        return self.typical_of(self.own)

    def typical_of(self, times: Floats) -> Floats:
        """Returns typical values of `times`, of shape (ranks, steps, ...), over its second axis.

        If this axis has steps, returns the median, which outliers do not change. If it has blocks of communications,
        returns the mean, because blocks contain different parts of a step.
        """
        middle = np.nanmedian if self.by_step else np.nanmean
        return np.asarray(middle(times, axis=1), np.float64)

    @cached_property
    def total(self) -> Floats:
        """Sum of the own time (time without waiting) of all kinds in ns, of shape (ranks, steps)."""
        return np.asarray(self.own.sum(axis=2), np.float64)


def own_table_of(job: JobTable, points: RankPoints, grid: Grid) -> OwnTable:
    """Returns the table of own times (time without waiting) by rank, step and kind. Steps are in order of their number,
    or of their position if they are not numbered.

    Fewer than MIN_STEPS steps do not show whether a rank is slow regularly. Then, each rank is divided into BLOCKS
    blocks with equal numbers of communications, which replace the steps. All ranks of a stage issue the same
    communications. Therefore, the n-th block ends at the same communication on each of these ranks.
    """
    starts = np.bincount(points.rank[~points.resumes], minlength=len(job.summaries))
    few = min(summary.steps for summary in job.summaries) < MIN_STEPS
    if few and starts.min() >= MIN_STARTS:
        return _by_block(points, job, grid, starts)
    numbers = [np.array(s.numbers) if job.numbered else np.arange(s.steps) for s in job.summaries]
    columns = np.unique(np.concatenate(numbers))
    own = np.full((len(job.summaries), len(columns), len(Own)), np.nan)
    step = np.zeros(len(points), np.int64)
    bounds = np.searchsorted(points.rank, np.arange(len(job.summaries) + 1))
    for position, summary in enumerate(job.summaries):
        mine = np.arange(bounds[position], bounds[position + 1])
        place = np.clip(np.searchsorted(summary.edges, points.time[mine], side="right") - 1, 0, summary.steps - 1)
        column = np.searchsorted(columns, numbers[position])
        own[position, column] = 0.0
        step[mine] = column[place]
        np.add.at(own[position], step[mine], points.own[mine])
    return OwnTable(own, _usual(own, job, grid), step, by_step=True)


def _by_block(points: RankPoints, job: JobTable, grid: Grid, starts: Ints) -> OwnTable:
    """Returns the table with blocks of communications instead of steps. `starts` has the number of communications of
    each rank."""
    begins = (~points.resumes).astype(np.int64)
    started: Ints = np.cumsum(begins) - begins
    first = np.searchsorted(points.rank, points.rank)
    block = np.minimum((started - started[first]) * BLOCKS // starts[points.rank], BLOCKS - 1).astype(np.int64)
    own = np.zeros((len(starts), BLOCKS, len(Own)))
    np.add.at(own, (points.rank, block), points.own)
    return OwnTable(own, _usual(own, job, grid), block, by_step=False)


def _usual(own: Floats, job: JobTable, grid: Grid) -> Floats:
    """Returns the usual own time (time without waiting) of the peers of each rank, with the shape and unit of `own`
    (see OwnTable). The only rank of a stage is compared with all ranks, as the module docstring describes."""
    usual = np.empty_like(own)
    anywhere = lower_median(own)
    for stage in range(grid.stages):
        peers = np.flatnonzero(grid.stage == stage)
        usual[peers] = lower_median(own[peers])
        if len(peers) == 1 < grid.stages:
            rank = int(peers[0])
            usual[rank] = np.where(_ALIKE, np.minimum(own[rank], anywhere), own[rank])
            usual[rank, :, Own.DEVICE] /= _device_slowness(job, grid, rank)
    return usual


def _device_slowness(job: JobTable, grid: Grid, rank: int) -> float:
    """Returns the median of (time of a kernel on `rank` / its time on the other ranks) over kernels of equal size; 1 if
    the device is not slow. `rank` is the position of the only rank of its stage.

    A stage with more work has more and larger kernels, but only a slow device makes all kernels of equal size longer.
    """
    ratios = kernel_ratios(job, grid, rank, of_equal_size=True)
    ratio = float(np.median(ratios)) if len(ratios) >= MIN_ALONE_KERNELS else 1.0
    return ratio if all_slower(ratios) else 1.0


def all_slower(ratios: list[float]) -> bool:
    """Returns True if `ratios` (see `kernel_ratios`) show that all kernels take longer by similar factors, as on a slow
    device."""
    ratio = float(np.median(ratios)) if ratios else 1.0
    return ratio >= 1 + MIN_SLOWER_KERNELS and min(ratios) - 1 >= MIN_ALIKE * (ratio - 1)


def kernel_ratio(job: JobTable, grid: Grid, rank: int) -> float:
    """Returns the median over kernels of (time on `rank` / time on its peers). `rank` is a position among the recorded
    ranks.

    Returns 1 if fewer than MIN_COMMON_KERNELS kernels can be compared. If the rank has more or less work, the times of
    only some kernels change, so the median hardly changes.
    """
    ratios = kernel_ratios(job, grid, rank)
    return float(np.median(ratios)) if len(ratios) >= MIN_COMMON_KERNELS else 1.0


def kernel_ratios(job: JobTable, grid: Grid, rank: int, *, of_equal_size: bool = False) -> list[float]:
    """Returns for each kernel of `rank` that its peers have too: (median time on `rank` / lower median of the times on
    the peers). `rank` is a position among the recorded ranks.

    If `of_equal_size` is True, only kernels with equal numbers of thread blocks count. A rank that is the only one of
    its stage is compared with all other ranks. At most MAX_COMPARED ranks are compared with `rank`.
    """
    mine, peers = job.summaries[rank].kernels, np.setdiff1d(grid.peers(rank), [rank])
    compared = peers if len(peers) else np.setdiff1d(np.arange(len(job.summaries)), [rank])
    kernels = [job.summaries[other].kernels for other in compared[:MAX_COMPARED].tolist()]
    ratios = []
    for name, median, blocks in zip(*(each.tolist() for each in (mine.name, mine.median, mine.blocks)), strict=True):
        if of_equal_size and not blocks:
            continue
        alike = [(of.name == name) & ((of.blocks == blocks) | (not of_equal_size)) for of in kernels]
        others = [int(of.median[same][0]) for of, same in zip(kernels, alike, strict=True) if same.any()]
        if others and median > 0:
            ratios.append(median / max(sorted(others)[(len(others) - 1) // 2], 1))
    return ratios


# Smallest standard deviation of the logarithms of amounts of work. Amounts that vary less do not show how the time
# depends on them.
MIN_VARIATION = 0.02
# Largest exponent p in time ~ amount ** p. The time of attention grows with the square of the sequence length.
MAX_POWER = 2.0


def amounts_of(job: JobTable, table: OwnTable) -> Floats:
    """Returns the amount of work of each rank in each step, of shape (ranks, steps): the number of elements of the
    first inputs of all operators or, if shapes were not recorded, the uploaded bytes.

    NaN in steps that a rank did not record. All values are NaN if neither amount was recorded in every step of every
    rank, or if the table has blocks of communications instead of steps.
    """
    unknown = np.full(table.total.shape, np.nan)
    for name in ("elements", "uploaded") if table.by_step else ():
        found = unknown.copy()
        for position, summary in enumerate(job.summaries):
            found[position, ~np.isnan(table.total[position])] = getattr(summary.work, name)
        if (np.nanmin(found, axis=1) > 0).all():
            return found
    return unknown


def expected_device(table: OwnTable, amounts: Floats, grid: Grid) -> Floats:
    """Returns the device time (ns) that the peers of each rank would need for its amount of work, of shape (ranks,
    steps).

    Batches and sequences of different size give ranks different amounts of work in each step. Therefore, a device is
    slow only if its time exceeds this expected time. `amounts` are as in amounts_of. If they are not known, returns the
    usual device time of the peers.
    """
    device = table.own[:, :, Own.DEVICE]
    expected = table.usual[:, :, Own.DEVICE].copy()
    if np.isnan(amounts).all():
        return expected
    for stage in range(grid.stages):
        peers = np.flatnonzero(grid.stage == stage)
        if len(peers) == 1 < grid.stages:
            continue
        work = amounts[peers] ** _power(device[peers], amounts[peers])
        expected[peers] = work * lower_median(device[peers] / work)
    return expected


def _power(device: Floats, amounts: Floats) -> float:
    """Returns the exponent p (0 to MAX_POWER) for which the device time of peers is proportional to amount ** p.

    `device` (ns) and `amounts` have the shape (peers, steps). p is fitted to the variation between the steps of each
    rank. Returns 1 if the amounts vary by less than MIN_VARIATION.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithms = [np.log(values) - np.log(lower_median(values)) for values in (amounts, device)]
    known = np.isfinite(logarithms[0]) & np.isfinite(logarithms[1])
    x, y = (np.where(known, values, np.nan) for values in logarithms)
    if not known.any() or (known.sum(axis=1) == 0).any():
        return 1.0
    x, y = (values - np.nanmean(values, axis=1, keepdims=True) for values in (x, y))
    if np.nanstd(x) < MIN_VARIATION:
        return 1.0
    return float(np.clip(np.nansum(x * y) / np.nansum(x * x), 0.0, MAX_POWER))
