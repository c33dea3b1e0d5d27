"""Candidates for the causes that delay a job, and comparisons of the amounts of work of its ranks.

The amounts of work are compared by shapes, uploaded bytes, and the parts of all-to-alls.
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
    """A possible cause. `ranks` are positions among the recorded ranks; `fix` is the change that would fix the cause.

    `facts` maps names to figures for the evidence. `low` and `high` are the changes if the fix does the least and the
    most that it may do; None means that no such estimates exist. `host` is the number of the host of a cause that
    concerns a host, otherwise -1. `bound` is the length of the job after the fix in ns, if the fix is not simulated
    (`fix` is None), otherwise None.
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
    """Returns the job with the fixes of `candidates`, which are applied in order."""
    changed = unchanged(context)
    for candidate in candidates:
        changed = candidate.fix(changed, context) if candidate.fix is not None else changed
    return changed


def bounded_share(context: JobContext, candidates: Sequence[Candidate]) -> float:
    """Returns the share of the job's length, 0 to 1, that remains after those fixes that are not simulated."""
    share = 1.0
    for candidate in candidates:
        share *= candidate.bound / context.replay.length if candidate.bound is not None else 1.0
    return share


def work_ratio(context: JobContext, rank: int) -> float:
    """Returns (work of `rank` / usual work of its peers); 1 if the amounts are not known."""
    table = context.amounts
    peers = context.grid.peers(rank)
    usual = lower_median(np.nanmean(table[peers], axis=1)) if not np.isnan(table).all() else np.nan
    return float(np.nanmean(table[rank]) / usual) if usual > 0 else 1.0


def expert_skew(context: JobContext) -> float:
    """Returns (largest part / mean part - 1) of an all-to-all, as the median over the all-to-alls with uneven parts;
    0 if there are none."""
    rows = context.job.rows
    skew = rows.skew[(rows.operation == Operation.ALL_TO_ALL) & (rows.skew > 0)]
    return float(np.median(skew)) / 1000 if len(skew) else 0.0
