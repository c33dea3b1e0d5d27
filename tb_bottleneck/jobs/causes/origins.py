"""Finds the ranks that cause the waiting in a job. The search begins at the rank that arrives last in each pair.

A rank may arrive last because it has waited itself in another group: a stage waits for its activations, or a rank waits
for the ranks that share its layers. Then, the rank is not the culprit, but the rank that it waited for may be.
"""

import numpy as np

from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.trace.table import Floats, Ints

# A rank is late on its own account if its own time of this step exceeds that of its peers by this share of what the
# others wait. Otherwise, if it has waited for so long itself, the waiting comes from the rank that it waited for most.
MIN_EXPLAINED = 0.5
# A pipeline has fewer stages.
_MAX_JUMPS = 64


def origins(context: JobContext) -> Ints:
    """Returns for each pair the position of the rank that caused the waiting."""
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
    """Returns for each row the column of OwnTable of the step in which the row starts."""
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
