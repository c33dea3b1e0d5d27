"""Changes of a job that the replay simulates: each returns new own times, wire times and tails."""

from dataclasses import dataclass, replace

import numpy as np

from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.replay.sweep import sweep
from tb_bottleneck.jobs.summary.rank_summary import Operation, Own
from tb_bottleneck.trace.table import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Changed:
    """Own time per point and kind, wire time per row, own time after the last point of each rank, in ns."""

    own: Floats
    wire: Floats
    tail: Floats

    def length(self, context: JobContext) -> float:
        """Returns the simulated length of the job in ns."""
        return sweep(context.graph, self.own, self.wire, self.tail).length


def unchanged(context: JobContext) -> Changed:
    """Returns the job as recorded."""
    graph = context.graph
    return Changed(graph.points.own, context.wires.wire, graph.tail)


def scaled(changed: Changed, context: JobContext, factor: Floats) -> Changed:
    """Returns own times multiplied by factors of shape (ranks, steps, kinds)."""
    points, table = context.graph.points, context.own
    own = changed.own * np.nan_to_num(factor[points.rank, table.step], nan=1.0)
    last = np.array([np.flatnonzero(~np.isnan(row))[-1] for row in table.total])
    before, after = table.own[np.arange(len(last)), last], factor[np.arange(len(last)), last]
    share = (before * np.nan_to_num(after, nan=1.0)).sum(axis=1) / np.maximum(before.sum(axis=1), 1.0)
    return replace(changed, own=own, tail=changed.tail * np.where(before.sum(axis=1) > 0, share, 1.0))


def like_peers(
    changed: Changed, context: JobContext, ranks: Ints, kinds: tuple[Own, ...], target: Floats | None = None
) -> Changed:
    """Returns ranks with at most the usual own time of their peers in each step, or the given one."""
    table = context.own
    goal = table.usual if target is None else target
    factor = np.ones_like(table.own)
    chosen = np.ix_(ranks, np.arange(table.own.shape[1]), np.array(kinds))
    with np.errstate(divide="ignore", invalid="ignore"):
        factor[chosen] = np.minimum(np.where(table.own[chosen] > 0, goal[chosen] / table.own[chosen], 1.0), 1.0)
    return scaled(changed, context, factor)


def even(changed: Changed, context: JobContext, ranks: Ints) -> Changed:
    """Returns the same device work, spread evenly over ranks in each step."""
    table = context.own
    device = table.own[ranks][:, :, Own.DEVICE]
    factor = np.ones_like(table.own)
    factor[ranks, :, Own.DEVICE] = np.where(device > 0, np.nanmean(device, axis=0) / np.maximum(device, 1.0), 1.0)
    return scaled(changed, context, factor)


def even_slots(changed: Changed, context: JobContext, ranks: Ints) -> Changed:
    """Returns the same device work, spread evenly over ranks in each slot: the work up to the n-th start of a step.

    Experts are uneven in some layers of a step only.
    """
    points, table = context.graph.points, context.own
    slot = _slots(context)
    chosen = np.flatnonzero(np.isin(points.rank, ranks))
    _, key = np.unique(table.step[chosen] * (slot.max(initial=0) + 1) + slot[chosen], return_inverse=True)
    device = changed.own[chosen, Own.DEVICE]
    mean = np.bincount(key, weights=device) / len(ranks)
    _, mine = np.unique(key * len(context.job.summaries) + points.rank[chosen], return_inverse=True)
    total = np.bincount(mine, weights=device)[mine]
    own = changed.own.copy()
    own[chosen, Own.DEVICE] = np.where(total > 0, device * mean[key] / np.maximum(total, 1.0), device)
    return replace(changed, own=own)


def _slots(context: JobContext) -> Ints:
    """Returns per point how many communications its rank has started before in the same step."""
    points, table = context.graph.points, context.own
    starts = (~points.resumes).astype(np.int64)
    started: Ints = np.cumsum(starts) - starts
    _, first, step = np.unique(points.rank * table.own.shape[1] + table.step, return_index=True, return_inverse=True)
    return np.asarray(started - started[first][step], np.int64)


def even_stages(changed: Changed, context: JobContext) -> Changed:
    """Returns the same device work, spread evenly over the stages of the pipeline."""
    table, stage = context.own, context.grid.stage
    device = np.nansum(table.own[:, :, Own.DEVICE], axis=1)
    per_stage = np.array([device[stage == number].mean() for number in range(context.grid.stages)])
    factor = np.ones_like(table.own)
    factor[:, :, Own.DEVICE] = (per_stage.mean() / np.maximum(per_stage, 1.0))[stage][:, None]
    return scaled(changed, context, factor)


def even_microbatches(changed: Changed, context: JobContext) -> Changed:
    """Returns microbatches of equal work: a rank's pieces of work that end at the same kind of message are equal."""
    classes, points = microbatch_classes(context), context.graph.points
    known = classes >= 0
    classes = classes * len(context.job.summaries) + points.rank
    own = changed.own.copy()
    device = own[known, Own.DEVICE]
    count = np.maximum(np.bincount(classes[known]), 1)
    own[known, Own.DEVICE] = (np.bincount(classes[known], weights=device) / count)[classes[known]]
    return replace(changed, own=own)


def microbatch_classes(context: JobContext) -> Ints:
    """Returns per point the class of its work: stage, and operation and direction of the message at its end; or -1."""
    job, points, grid = context.job, context.graph.points, context.grid
    rows = job.rows
    place = dict(zip(job.ranks, grid.stage.tolist(), strict=True))
    peer = np.array([place.get(rank, -1) for rank in rows.peer.tolist()], np.int64)
    stage = grid.stage[points.rank]
    message = peer[points.row] >= 0
    classes = ((stage * 12 + rows.operation[points.row]) * 2 + points.resumes) * 2 + (peer[points.row] > stage)
    return np.where(message, classes, -1)


def wires_at_most(changed: Changed, rows: Ints, wire: Floats) -> Changed:
    """Returns rows with at most these wire times in ns."""
    new = changed.wire.copy()
    new[rows] = np.minimum(new[rows], wire)
    return replace(changed, wire=new)


def hidden(changed: Changed, context: JobContext, rows: Bools, share: float) -> Changed:
    """Returns collectives with transfers that run beside the work that follows, up to a share of that work.

    In each step one transfer per operation stays exposed: the first gather, before which there is no work, or the last
    reduction, after which there is none.
    """
    job, table = context.job.rows, context.own
    key = (job.rank * (int(job.step.max(initial=0)) + 1) + job.step) * len(Operation) + job.operation
    _, kind = np.unique(key, return_inverse=True)
    order = np.arange(len(job))
    gathers = job.operation == Operation.ALL_GATHER
    first, last = np.full(int(kind.max(initial=0)) + 1, len(job)), np.full(int(kind.max(initial=0)) + 1, -1)
    np.minimum.at(first, kind[rows], order[rows])
    np.maximum.at(last, kind[rows], order[rows])
    exposed = order == np.where(gathers, first[kind], last[kind])
    device = np.nansum(table.own[:, :, Own.DEVICE])
    hideable = rows & ~exposed
    part = min(share * device / max(float(changed.wire[hideable].sum()), 1.0), 1.0)
    return replace(changed, wire=np.where(hideable, changed.wire * (1 - part), changed.wire))


def at_common_steps(changed: Changed, context: JobContext, collected: Floats) -> Changed:
    """Returns garbage collections at common steps: the n-th collection of each rank is in the same step.

    `collected` is the time of the collections by rank and step.
    """
    table = context.own
    usual = np.where(
        collected > 0, np.maximum(table.own[:, :, Own.INTERRUPTION] - collected, 0.0), table.own[:, :, Own.INTERRUPTION]
    )
    counts = (collected > 0).sum(axis=1)
    steps = np.linspace(0, collected.shape[1] - 1, int(counts.max(initial=0)) + 2)[1:-1].round().astype(np.int64)
    target = usual.copy()
    for rank, row in enumerate(collected):
        for number, step in enumerate(np.flatnonzero(row > 0)):
            target[rank, steps[number]] += row[step]
    own = changed.own.copy()
    points = context.graph.points
    _, first = np.unique(points.rank * table.own.shape[1] + table.step, return_index=True)
    own[:, Own.INTERRUPTION] = 0.0
    own[first, Own.INTERRUPTION] = target[points.rank[first], table.step[first]]
    return replace(changed, own=own)
