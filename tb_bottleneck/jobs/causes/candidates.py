"""Candidates for what makes a rank late, and the amounts of its work.

The amounts of work of ranks are compared by shapes, uploaded bytes, and parts of all-to-alls.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.own_table import lower_median
from tb_bottleneck.jobs.scenarios import Changed, unchanged
from tb_bottleneck.jobs.summary.rank_summary import Operation
from tb_bottleneck.trace.table import Ints

Fix = Callable[[Changed, JobContext], Changed]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A possible cause: the positions of its ranks, and the change of the job that would fix it.

    `facts` are figures for its evidence, by name. `low` and `high` are the least and the most that the fix may do;
    without them, the other errors of a gain count. `bound` is the length of the job after the fix in ns, for causes
    whose fix is not simulated.
    """

    cause: str
    ranks: Ints
    fix: Fix | None
    facts: Mapping[str, float | str] = field(default_factory=dict)
    low: Fix | None = None
    high: Fix | None = None
    host: int = -1
    bound: float | None = None


def fixed(context: JobContext, candidates: Sequence[Candidate]) -> Changed:
    """Returns the job with these fixes, in this order."""
    changed = unchanged(context)
    for candidate in candidates:
        changed = candidate.fix(changed, context) if candidate.fix is not None else changed
    return changed


def bounded_share(context: JobContext, candidates: Sequence[Candidate]) -> float:
    """Returns the share of the job's length that remains after the fixes that are not simulated."""
    share = 1.0
    for candidate in candidates:
        share *= candidate.bound / context.replay.length if candidate.bound is not None else 1.0
    return share


def work_ratio(context: JobContext, rank: int) -> float:
    """Returns how many times the work of its peers a rank has; 1 if it is not known."""
    table = context.amounts
    peers = context.grid.peers(rank)
    usual = lower_median(np.nanmean(table[peers], axis=1)) if not np.isnan(table).all() else np.nan
    return float(np.nanmean(table[rank]) / usual) if usual > 0 else 1.0


def expert_skew(context: JobContext) -> float:
    """Returns by how much the largest part of an all-to-all exceeds the mean part: the median over the all-to-alls with
    parts of their own, as a share."""
    rows = context.job.rows
    skew = rows.skew[(rows.operation == Operation.ALL_TO_ALL) & (rows.skew > 0)]
    return float(np.median(skew)) / 1000 if len(skew) else 0.0
