"""Candidates for the causes that delay a job: the amounts of work of its ranks, and the ranks where waiting begins.

The amounts of work are compared by the shapes of operator inputs, by the bytes uploaded to the device, and by the parts
that an all-to-all sends to each rank.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from tb_bottleneck.base.stragglers import lower_median
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.scenarios import Changed, unchanged
from tb_bottleneck.jobs.summary.rank_summary import Operation
from tb_bottleneck.trace.table import Floats, Ints

Fix = Callable[[Changed, JobContext], Changed]
"""A function that takes a changed job and the analysis of the job, and returns the job with one more change."""


Fact: TypeAlias = float | str | Sequence[int]
"""A number, an id or name, or numbers of ranks or layers."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A possible cause of a slow job, before its gain is known.

    `cause` is its id, such as "slow_rank". `ranks` are the affected ranks, as positions among the recorded ranks. `fix`
    is the change of the job that simulates the fix. `facts` maps the names of the evidence in the report to figures or
    texts. `low` and `high` simulate the smallest and the largest plausible effect of the fix; None means that there is
    no such estimate. `host` is the number of the host for a cause that concerns a host, otherwise -1. If the fix cannot
    be simulated, `fix` is None and `bound` is a lower bound of the length of the job after the fix, in ns.
    """

    cause: str
    ranks: Ints
    fix: Fix | None
    facts: Mapping[str, Fact] = field(default_factory=dict)
    low: Fix | None = None
    high: Fix | None = None
    host: int = -1
    bound: float | None = None


def fixed(context: JobContext, candidates: Sequence[Candidate]) -> Changed:
    """Returns the job with the fixes of `candidates` applied in this order. Candidates without a simulated fix change
    nothing."""
    changed = unchanged(context)
    for candidate in candidates:
        changed = candidate.fix(changed, context) if candidate.fix is not None else changed
    return changed


def bounded_share(context: JobContext, candidates: Sequence[Candidate]) -> float:
    """Returns the share (0 to 1) of the job's length that remains after the fixes that are not simulated: the product
    of (bound / length of the unchanged job) over the candidates with a bound."""
    share = 1.0
    for candidate in candidates:
        share *= candidate.bound / context.replay.length if candidate.bound is not None else 1.0
    return share


def work_ratio(context: JobContext, rank: int) -> float:
    """Returns (mean amount of work of `rank` per step / lower median of these means over the ranks of its stage,
    including `rank`); 1 if the amounts are not known. `rank` is a position among the recorded ranks."""
    table = context.amounts
    peers = context.grid.peers(rank)
    usual = lower_median(np.nanmean(table[peers], axis=1)) if not np.isnan(table).all() else np.nan
    return float(np.nanmean(table[rank]) / usual) if usual > 0 else 1.0


def expert_skew(context: JobContext) -> float:
    """Returns how uneven the parts of all-to-alls (the data for each rank) are: the median of (largest part / mean part
    - 1) over all-to-alls with uneven parts; 0 if there are none."""
    rows = context.job.rows
    skew = rows.skew[(rows.operation == Operation.ALL_TO_ALL) & (rows.skew > 0)]
    return float(np.median(skew)) / 1000 if len(skew) else 0.0


# A rank causes a wait itself if its own time (time without waiting) in the step exceeds that of its peers by this share
# of the mean time that the other ranks wait. Otherwise, if the rank has itself waited for at least as long, the search
# for the cause continues at the rank that it waited for most.
MIN_EXPLAINED = 0.5
# Largest number of ranks that one search visits. A pipeline has fewer stages.
_MAX_JUMPS = 64


def origins(context: JobContext) -> Ints:
    """Returns for each pair (the rows of one operation on several ranks) the position of the rank that caused the
    waiting of the other ranks.

    The search begins at the rank that arrives last. This rank may itself have waited in another group: a stage waits
    for its activations, or a rank waits for the ranks that share its layers. If the own time of a rank (time without
    waiting) does not explain the wait (MIN_EXPLAINED), and the rank has itself waited long enough, the search continues
    at the rank that it waited for most.
    """
    wires, table = context.wires, context.own
    if not context.pairs.count:
        return np.zeros(0, np.int64)
    rank, column = context.job.rows.rank[wires.last], _columns(context)[wires.last]
    excess = np.nan_to_num(table.total - table.usual.sum(axis=2))
    most, waited = _waited_for(context)
    late = MIN_EXPLAINED * _mean_wait(context)
    for _ in range(_MAX_JUMPS):
        victim = (excess[rank, column] < late) & (waited[rank, column] >= late)
        following = np.where(victim, most[rank, column], rank)
        if (following == rank).all():
            break
        rank = following
    return rank


def _columns(context: JobContext) -> Ints:
    """Returns for each row of the job (a communication of one rank) the step in which it starts, as an index of the
    second axis of OwnTable."""
    points, column = context.graph.points, np.zeros(len(context.job.rows), np.int64)
    starts = np.flatnonzero(~points.resumes)
    column[points.row[starts]] = context.own.step[starts]
    return column


def _waited_for(context: JobContext) -> tuple[Ints, Floats]:
    """Returns the position of the rank that each rank waits for most in each step, and the time of this waiting in ns.

    Both arrays have the shape (ranks, steps).
    """
    pairs, wires, rows = context.pairs, context.wires, context.job.rows
    ranks, steps = context.own.total.shape
    mine = np.flatnonzero((pairs.pair >= 0) & (wires.wait > 0))
    last, place = rows.rank[wires.last[pairs.pair[mine]]], rows.rank[mine] * steps + _columns(context)[mine]
    keys, which = np.unique(place * ranks + last, return_inverse=True)
    waits = np.bincount(which, weights=wires.wait[mine], minlength=len(keys))
    most, waited = np.zeros(ranks * steps, np.int64), np.zeros(ranks * steps)
    order = np.argsort(waits, kind="stable")  # the largest is written last
    most[keys[order] // ranks], waited[keys[order] // ranks] = keys[order] % ranks, waits[order]
    return most.reshape(ranks, steps), waited.reshape(ranks, steps)


def _mean_wait(context: JobContext) -> Floats:
    """Returns for each pair the mean waiting time in ns of the ranks that did not arrive last."""
    pairs = context.pairs
    paired = pairs.pair >= 0
    total = np.bincount(pairs.pair[paired], weights=context.wires.wait[paired], minlength=pairs.count)
    members = np.bincount(pairs.pair[paired], minlength=pairs.count)
    return np.asarray(total / np.maximum(members - 1, 1), np.float64)
