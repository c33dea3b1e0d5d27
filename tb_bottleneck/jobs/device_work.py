"""The amount of work of each rank and step, and the device time that it explains.

Batches and sequences of different size give ranks different work in each step. A rank whose device is slow takes longer
than its own work explains.
"""

import numpy as np

from tb_bottleneck.jobs.group_kinds import Grid
from tb_bottleneck.jobs.own_table import OwnTable, lower_median
from tb_bottleneck.jobs.pairing.job_table import JobTable
from tb_bottleneck.jobs.summary.rank_summary import Own
from tb_bottleneck.trace.table import Floats

# Amounts that vary less, as the standard deviation of their logarithm, do not show how the time follows them.
MIN_VARIATION = 0.02
# Time per step follows the amount at most like this power: attention grows with the square of the length.
MAX_POWER = 2.0


def amounts_of(job: JobTable, table: OwnTable) -> Floats:
    """Returns the work per rank and step: elements of operators, or uploaded bytes if shapes were not recorded; NaN if
    neither was, not by all ranks, or if the table is not by step."""
    unknown = np.full(table.total.shape, np.nan)
    for name in ("elements", "uploaded") if table.by_step else ():
        found = unknown.copy()
        for position, summary in enumerate(job.summaries):
            found[position, ~np.isnan(table.total[position])] = getattr(summary.work, name)
        if (np.nanmin(found, axis=1) > 0).all():
            return found
    return unknown


def expected_device(table: OwnTable, amounts: Floats, grid: Grid) -> Floats:
    """Returns the device time per rank and step that peers need for the same amount of work, in ns; the usual device
    time where the amounts are not known."""
    device = table.own[:, :, Own.DEVICE]
    expected = table.usual[:, :, Own.DEVICE].copy()
    if np.isnan(amounts).all():
        return expected
    for stage in range(grid.stages):
        peers = np.flatnonzero(grid.stage == stage)
        work = amounts[peers] ** _power(device[peers], amounts[peers])
        expected[peers] = work * lower_median(device[peers] / work)
    return expected


def _power(device: Floats, amounts: Floats) -> float:
    """Returns p where the device time of peers follows amount ** p, from how both vary within each rank; 1 if they do
    not vary enough."""
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
