"""Changes of a job that the replay simulates. Each change returns new own times (time without waiting), wire times
(time of the transfer) and tails (own time of a rank after its last point)."""

from dataclasses import dataclass, replace

import numpy as np

from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.group_kinds import LAYER_KINDS
from tb_bottleneck.jobs.pairing.pairs import P2P
from tb_bottleneck.jobs.replay.sweep import Result
from tb_bottleneck.jobs.summary.rank_summary import Operation, Own
from tb_bottleneck.trace.table import Bools, Floats, Ints

# A device is slow if its ratio to its peers (see _speeds) is larger. Devices of one model differ by about 2 %; larger
# ratios up to this value may be noise of the amounts of work.
MIN_SLOW_DEVICE = 1.05


@dataclass(frozen=True, eq=False)
class Changed:
    """The times of a changed job, in ns.

    `own` is the own time (time without waiting for other ranks) before each point, of shape (points, kinds of Own).
    `wire` is the wire time (time of the transfer) of each row. `tail` is the own time of each rank after its last
    point. `of_all` is True if the change also applies to unrecorded ranks, so that they are not late either.
    """

    own: Floats
    wire: Floats
    tail: Floats
    of_all: bool = False

    def length(self, context: JobContext) -> float:
        """Returns the simulated time in ns from the start of the first window to the end of the last window."""
        return self.result(context).length

    def result(self, context: JobContext) -> Result:
        """Returns the result of the simulation of the changed job, including unrecorded ranks."""
        graph = context.unhindered if self.of_all else context.complete
        return graph.simulated(self.own, self.wire, self.tail)


def unchanged(context: JobContext) -> Changed:
    """Returns the times of the job as recorded."""
    graph = context.graph
    return Changed(graph.points.own, context.wires.wire, graph.tail)


def scaled(changed: Changed, context: JobContext, factor: Floats) -> Changed:
    """Returns the job with own times (time without waiting) multiplied by `factor`, of shape (ranks, steps, kinds). NaN
    changes nothing. The tail of a rank changes in proportion to its own time in its last recorded step."""
    points, table = context.graph.points, context.own
    own = changed.own * np.nan_to_num(factor[points.rank, table.step], nan=1.0)
    last = np.array([np.flatnonzero(~np.isnan(row))[-1] for row in table.total])
    before, after = table.own[np.arange(len(last)), last], factor[np.arange(len(last)), last]
    share = (before * np.nan_to_num(after, nan=1.0)).sum(axis=1) / np.maximum(before.sum(axis=1), 1.0)
    return replace(changed, own=own, tail=changed.tail * np.where(before.sum(axis=1) > 0, share, 1.0))


def kinds_mask(kinds: tuple[Own, ...]) -> Bools:
    """Returns a mask of shape (1, number of kinds of own time) that is True for `kinds`."""
    return np.isin(np.arange(len(Own)), kinds)[None, :]


def like_peers(
    changed: Changed, context: JobContext, ranks: Ints, kinds: Bools, target: Floats | None = None
) -> Changed:
    """Returns the job in which the own time (time without waiting) of `ranks` in each step is at most the usual own
    time of their peers.

    `ranks` are positions among the recorded ranks. `kinds` is a mask of the kinds of own time that change, of shape
    (len(ranks) or 1, kinds). `target` is used instead of the usual own time: times in ns, of shape (all recorded ranks,
    steps, kinds).
    """
    table = context.own
    own, goal = table.own[ranks], (table.usual if target is None else target)[ranks]
    with np.errstate(divide="ignore", invalid="ignore"):
        limited = np.minimum(np.where(own > 0, goal / own, 1.0), 1.0)
    factor = np.ones_like(table.own)
    factor[ranks] = np.where(kinds[:, None, :], limited, 1.0)
    return scaled(changed, context, factor)


def _device(changed: Changed, context: JobContext) -> Floats:
    """Returns the device time of the changed job in ns, of shape (ranks, steps); NaN for unrecorded steps."""
    points, table = context.graph.points, context.own
    device = np.where(np.isnan(table.total), np.nan, 0.0)
    np.add.at(device, (points.rank, table.step), changed.own[:, Own.DEVICE])
    return device


def _speeds(changed: Changed, context: JobContext) -> Floats:
    """Returns for each rank (device time / device time of its peers for the same amount of work), at least 1.

    The value is 1 if the device is not slower than MIN_SLOW_DEVICE, or if the amounts of work are not known.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        speed = np.nanmedian(_device(changed, context) / context.expected_device, axis=1)
    slow = np.isfinite(speed) & (speed > MIN_SLOW_DEVICE) & ~np.isnan(context.amounts).all()
    return np.where(slow, speed, 1.0)


def even_work(changed: Changed, context: JobContext) -> Changed:
    """Returns the job with the same total device work, spread evenly over the ranks. In a pipeline, the work is spread
    evenly over the microbatches instead, because uneven microbatches delay each other."""
    return even_microbatches(changed, context) if context.grid.stages > 1 else even(changed, context)


def even_ranks(changed: Changed, context: JobContext) -> Changed:
    """Returns the job with evenly spread device work, for a job in which the same ranks have too much work in each
    step.

    In a pipeline, this is even_work. In other jobs, ranks that were not recorded are assumed to have the lower median
    of the work of recorded ranks, because they are probably not among the ranks with too much work.
    """
    return even_work(changed, context) if context.grid.stages > 1 else even(changed, context, others_are_usual=True)


def even(changed: Changed, context: JobContext, others_are_usual: bool = False) -> Changed:
    """Returns the job with the same device work, spread evenly over the ranks of each stage, separately in each slot.

    The n-th slot of a step is the work before the n-th start of a communication. Work is not moved between slots,
    because parts of a step, such as the optimizer, may already be even, and experts are uneven only in some layers.
    Ranks that were not recorded are assumed to have the mean work of the recorded ranks or, if `others_are_usual` is
    True, the lower median of this work. The speed of each device stays the same.
    """
    points, table, slot = context.graph.points, context.own, _slots(context)
    places = (table.step * context.grid.stages + context.grid.stage[points.rank]) * (slot.max(initial=0) + 1) + slot
    _, key = np.unique(places, return_inverse=True)
    pieces, mine = np.unique(key * len(context.job.summaries) + points.rank, return_inverse=True)
    speed, device = _speeds(changed, context)[points.rank], changed.own[:, Own.DEVICE]
    members = np.bincount(key[np.unique(mine, return_index=True)[1]])
    work, count = np.bincount(key, weights=device / speed), members.astype(np.float64)
    if others_are_usual:
        pieces_of = np.bincount(mine, weights=device / speed, minlength=len(pieces))
        owner = pieces // len(context.job.summaries)
        order = np.lexsort((pieces_of, owner))
        median = pieces_of[order][np.searchsorted(owner[order], np.arange(len(members))) + (members - 1) // 2]
        others = np.maximum(context.job.world_size / context.grid.stages - members, 0.0)
        work, count = work + others * median, count + others
    mean = work / count
    total = np.bincount(mine, weights=device, minlength=len(pieces))[mine]
    own = changed.own.copy()
    own[:, Own.DEVICE] = np.where(total > 0, device * mean[key] * speed / np.maximum(total, 1.0), device)
    return replace(changed, own=own, of_all=True)


def _slots(context: JobContext) -> Ints:
    """Returns for each point the number of communications that its rank has already started in the same step."""
    points, table = context.graph.points, context.own
    starts = (~points.resumes).astype(np.int64)
    started: Ints = np.cumsum(starts) - starts
    _, first, step = np.unique(points.rank * table.own.shape[1] + table.step, return_index=True, return_inverse=True)
    return np.asarray(started - started[first][step], np.int64)


def even_stages(changed: Changed, context: JobContext, stages: Floats) -> Changed:
    """Returns the job in which the device time of each stage is divided by its factor in `stages`, which has one factor
    per stage. A factor of 0 or NaN changes nothing. The change also applies to unrecorded ranks (see
    Changed.of_all)."""
    factor = np.ones_like(context.own.own)
    shorter = np.divide(1.0, stages, out=np.ones_like(stages), where=stages > 0)
    factor[:, :, Own.DEVICE] = shorter[context.grid.stage][:, None]
    return replace(scaled(changed, context, factor), of_all=True)


def even_microbatches(changed: Changed, context: JobContext) -> Changed:
    """Returns the job with equal microbatches: all work of the same class (see microbatch_classes) takes the same
    device time, apart from the speed of the device.

    Unrecorded stages and replicas are assumed to have equal microbatches too: waits for these stages and replicas take
    as long as in the steps in which they are early.
    """
    classes, points = microbatch_classes(context), context.graph.points
    known = classes >= 0
    speed = _speeds(changed, context)[points.rank[known]]
    device = changed.own[known, Own.DEVICE] / speed
    count = np.maximum(np.bincount(classes[known]), 1)
    own = changed.own.copy()
    own[known, Own.DEVICE] = (np.bincount(classes[known], weights=device) / count)[classes[known]] * speed
    rows, usual = context.unpaired
    collective = ~np.isin(context.job.rows.operation[rows], P2P)
    changed = wires_at_most(replace(changed, own=own, of_all=True), rows[collective], usual[collective])
    return wires_at_most(changed, *context.early_messages)


def microbatch_classes(context: JobContext) -> Ints:
    """Returns for each point the number of the class of the work before it; -1 if the work belongs to no microbatch.

    Work of one class should take equally long for all microbatches. A class is defined by the stage and by the
    communications before and after the work.

    For example, if a stage receives a gradient and then sends an activation, it has done backward and forward work in
    between. If it sends two activations, it has done only forward work in between. In an interleaved pipeline, the
    first stage receives activations of the last stage and gradients of the second stage. Work before averages of
    gradients does not belong to a microbatch. For an unrecorded rank, the distance in ranks is used instead of its
    stage.
    """
    job, points, grid = context.job, context.graph.points, context.grid
    rows = job.rows
    place = dict(zip(job.ranks, grid.stage.tolist(), strict=True))
    peer = np.array([place.get(rank, -1) for rank in rows.peer.tolist()], np.int64)
    others = np.flatnonzero((peer < 0) & (rows.peer >= 0))
    distances, distance = np.unique((rows.peer - np.array(job.ranks)[rows.rank])[others], return_inverse=True)
    peer[others] = grid.stages + distance
    peer = peer[points.row]
    stage, operation = grid.stage[points.rank], rows.operation[points.row]
    layered = np.isin(np.array(grid.kinds or ("",)), LAYER_KINDS)[rows.group[points.row]] & (peer < 0)
    peers = grid.stages + len(distances) + 1
    none = peers * len(Operation)
    code = np.where((peer >= 0) | layered, operation * peers + peer + 1, none)
    before = np.where(points.first, none, np.concatenate(([0], code[:-1]))[: len(code)])
    kinds = none + 1
    classes = ((stage * kinds + before) * kinds + code) * 2 + points.resumes
    _, numbers = np.unique(classes, return_inverse=True)
    return np.where((peer >= 0) | layered, numbers, -1)


def wires_at_most(changed: Changed, rows: Ints, wire: Floats) -> Changed:
    """Returns the job in which the wire time (time of the transfer) of each of `rows` is at most the value of `wire`
    (ns) for this row.

    `rows` and `wire` have the same length.
    """
    new = changed.wire.copy()
    new[rows] = np.minimum(new[rows], wire)
    return replace(changed, wire=new)


def hidden(changed: Changed, context: JobContext, rows: Bools, share: float) -> Changed:
    """Returns the job in which the transfers of the mask `rows` run in parallel with device work and cost no time.

    The total hidden transfer time is at most `share` (0 to 1) times the total device time of the job. In each step of
    each rank, one transfer per type of operation is not hidden: the first gather, because there is no work before it,
    or the last reduction, because there is no work after it.
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
    """Returns the job in which all ranks do their n-th garbage collection in the same step.

    `collected` is the time of garbage collection in ns, of shape (ranks, steps). Other interruptions are not moved.
    """
    points, table = context.graph.points, context.own
    place = points.rank * collected.shape[1] + table.step
    known, first = np.unique(place, return_index=True)
    interrupted = changed.own[:, Own.INTERRUPTION]
    total = np.bincount(place, weights=interrupted, minlength=collected.size)
    moved = np.minimum(collected.ravel(), total).reshape(collected.shape)
    recorded = np.isin(np.arange(collected.size), known).reshape(collected.shape)
    steps = _common_steps(moved > 0)
    target = np.zeros_like(collected)
    for rank, row in enumerate(moved):
        for number, step in enumerate(np.flatnonzero(row > 0).tolist()):
            target[rank, steps[number] if recorded[rank, steps[number]] else step] += row[step]
    own = changed.own.copy()
    own[:, Own.INTERRUPTION] = interrupted * (1 - moved.ravel() / np.maximum(total, 1.0))[place]
    own[first, Own.INTERRUPTION] += target.ravel()[known]
    return replace(changed, own=own, of_all=True)


def _common_steps(collects: Bools) -> Ints:
    """Returns the steps in which all ranks will collect garbage, spread evenly over the recording.

    `collects` is True for each rank and step with a collection, of shape (ranks, steps). The result has as many steps
    as the rank with the most collections.
    """
    count = int(collects.sum(axis=1).max(initial=0))
    return np.linspace(0, collects.shape[1] - 1, count + 2)[1:-1].round().astype(np.int64)
