"""Pauses of single ranks in single steps: checkpoints, logging, evaluation, garbage collection, slow batches."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from tb_bottleneck.jobs.causes.candidates import Candidate
from tb_bottleneck.jobs.causes.slow_ranks import fixed_kinds, origin_share
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.pairing.pairs import P2P
from tb_bottleneck.jobs.scenarios import Changed, at_common_steps, kinds_mask, like_peers, wires_at_most
from tb_bottleneck.jobs.summary.rank_summary import Own
from tb_bottleneck.trace.table import Bools, Floats, Ints

# In a pause, the own time of one kind exceeds that of the peers by more than this share of the step.
MIN_PAUSE = 0.05
# Host time varies more from step to step. Therefore, an unexplained pause of the host has to exceed this share.
MIN_HOST_PAUSE = 0.25
# Smallest number of host pauses of a rank. A single pause is no pattern: on machines that run other programs, single
# pauses occur on all ranks.
MIN_HOST_PAUSES = 2
# A garbage collection explains a pause if it takes at least this share of the pause.
MIN_COLLECTED = 0.5


def pauses(context: JobContext) -> Iterator[Candidate]:
    """Yields the candidates for pauses of single ranks in single steps: by interruptions ("rank_interruption"), by slow
    batches ("rank_input"), and by garbage collection in different steps on different ranks ("unsynchronised_gc")."""
    excess = np.nan_to_num(context.own.excess)
    slow = fixed_kinds(context)
    collected = collections(context)
    interrupted = excess[:, :, Own.INTERRUPTION] > MIN_PAUSE * context.step_ns
    by_collector = interrupted & (collected >= MIN_COLLECTED * excess[:, :, Own.INTERRUPTION])
    all_recorded = len(context.job.ranks) == context.job.world_size
    if len(_ranks(by_collector)) < (2 if all_recorded else 1):  # unrecorded ranks may collect in other steps
        by_collector = np.zeros_like(by_collector)
    time = np.where(by_collector, collected, 0.0)
    yield from _of_kind(context, "rank_interruption", interrupted & ~by_collector, Own.INTERRUPTION, slow, time)
    late = excess[:, :, Own.INPUT] > MIN_PAUSE * context.step_ns
    yield from _of_kind(context, "rank_input", late, Own.INPUT, slow)
    stopped = excess[:, :, Own.HOST] + excess[:, :, Own.OTHER] > MIN_HOST_PAUSE * context.step_ns
    stopped &= ~(interrupted | late)
    count = stopped.sum(axis=1)
    recurring = (count >= MIN_HOST_PAUSES) & (count < stopped.shape[1] / 2)
    yield from _of_kind(context, "rank_interruption", stopped & recurring[:, None], Own.HOST, slow)
    if by_collector.any():
        facts = {"pauses": float(by_collector.sum()), "pause_ns": float(collected[by_collector].mean())}
        yield Candidate("unsynchronised_gc", _ranks(by_collector), partial(_synchronised, collected=time), facts)


def _synchronised(changed: Changed, context: JobContext, collected: Floats) -> Changed:
    """Returns the job in which all ranks, including unrecorded ranks, run garbage collection in the same steps.
    `collected` is the time of garbage collection in ns, of shape (ranks, steps)."""
    rows, usual = context.unpaired
    collective = ~np.isin(context.job.rows.operation[rows], P2P)
    changed = wires_at_most(at_common_steps(changed, context, collected), rows[collective], usual[collective])
    return wires_at_most(changed, *context.usual_messages)


def collections(context: JobContext) -> Floats:
    """Returns the time of garbage collection in ns, of shape (ranks, steps); all values are 0 if the table of own times
    (time without waiting) has blocks of communications instead of steps."""
    table = np.zeros(context.own.own.shape[:2])
    if not context.own.by_step:
        return table
    for position, summary in enumerate(context.job.summaries):
        known = np.flatnonzero(~np.isnan(context.own.total[position]))
        table[position, known] = summary.work.collected
    return table


def _of_kind(
    context: JobContext, cause: str, paused: Bools, kind: Own, slow: Bools, remaining: Floats | float = 0.0
) -> Iterator[Candidate]:
    """Yields a candidate with the cause `cause` for the pauses of one kind of own time (time without waiting for other
    ranks); none if no rank has such pauses.

    `paused` is a mask of the pauses, of shape (ranks, steps). `slow` is a mask of shape (ranks, kinds): True if time of
    the kind is longer than on the peers in most steps; such ranks are left out. `remaining` is time in ns, of shape
    (ranks, steps), that has another cause and stays after the fix. If the other rank of a message was not recorded,
    that rank also waited for the pause. Therefore, the fix also gives such messages their usual time in steps with a
    pause.
    """
    ranks = np.setdiff1d(_ranks(paused), np.flatnonzero(slow[:, kind]))
    if not len(ranks):
        return
    excess = np.nan_to_num(context.own.excess[:, :, kind])[ranks]
    facts = {
        "pauses": float(paused[ranks].sum()),
        "pause_ns": float(excess[paused[ranks]].mean()),
        "origin_share": origin_share(context, ranks),
    }
    kinds = kinds_mask((Own.HOST, Own.OTHER) if kind is Own.HOST else (kind,))
    target = context.own.usual.copy()
    target[:, :, kind] += remaining
    column = np.full(len(context.job.rows), -1)
    column[context.graph.points.row] = context.own.step
    rows, usual = context.usual_messages
    behind = np.isin(column[rows], np.flatnonzero(paused[ranks].any(axis=0)))

    def without(changed: Changed, of: JobContext) -> Changed:
        return wires_at_most(like_peers(changed, of, ranks, kinds, target), rows[behind], usual[behind])

    yield Candidate(cause, ranks, without, facts)


def _ranks(paused: Bools) -> Ints:
    """Returns the positions of the ranks with at least one pause. `paused` has the shape (ranks, steps)."""
    return np.flatnonzero(paused.any(axis=1))
