"""Transfers that run with no compute in parallel, and that neither a slow rank nor a slow link explains."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tb_bottleneck.bottlenecks.communication.facts import MANY_COLLECTIVES, SMALL_BYTES
from tb_bottleneck.jobs.causes.candidates import Candidate, Fact
from tb_bottleneck.jobs.causes.slow_links import pairs_complete, partly_recorded_slow_rows, slow_rows
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.group_kinds import LAYER_KINDS, OVERLAPPED_KINDS
from tb_bottleneck.jobs.pairing.pairs import P2P
from tb_bottleneck.jobs.scenarios import Changed, hidden, unchanged, wires_at_most
from tb_bottleneck.jobs.summary.rank_summary import Operation, Own
from tb_bottleneck.trace.table import Bools, Floats, Ints

Texts = NDArray[np.str_]

# Smallest share of the step that exposed transfers must take. The share for messages is larger, because some messages
# can never run in parallel with work: the first and the last of a step, and several times as many in an interleaved
# pipeline. Both values are chosen.
MIN_EXPOSED, MIN_EXPOSED_MESSAGES = 0.10, 0.15
# If several types of operations are exposed together, types with a smaller share of the step are not changed.
MIN_PART = 0.01
QUICKEST = 0.9
"""Quantile of the rates (bytes per time) of small exchanges that a combined exchange reaches. A choice: it is faster,
because most of the start-up times disappear, too."""
LEFT_ON_FREE_CORES = 0.8
"""Own time of the ranks at best / recorded own time, if the threads of the backend leave them the cores. Without this
factor, the measured gains of two trainings of two ranks on two cores exceeded the highest estimate by 1 to 23 %
(tests/measurements/trainings: ddp)."""


def exposed_transfers(context: JobContext) -> Iterator[Candidate]:
    """Yields a candidate for each kind of transfer that takes a large share of the step with no work in parallel.

    The kinds are transfers of gradients and parameters, of activations within the layers, and of messages between
    stages. Transfers of gradients and parameters can run in parallel with the work that follows, or be left out if a
    later exchange repeats them. The other transfers cannot run in parallel, because the next work needs their results.
    Their gain is the bound for a job without these transfers. Only the fix for messages in a job with unrecorded ranks
    is simulated. In a job on CPUs, many small exchanges have a second candidate, which combines them.
    """
    rows = context.job.rows
    if not len(rows):
        return
    share = _exposed_time(context) / (context.step_ns * context.steps * len(context.job.summaries))
    kind, messages = np.array(context.grid.kinds)[rows.group], np.isin(rows.operation, P2P)
    layers = np.isin(kind, LAYER_KINDS)
    between_stages = messages & ~layers & (context.grid.stages > 1)
    averages, repeated = np.isin(kind, OVERLAPPED_KINDS) & ~messages, rows.repeated > 0
    for cause, mine, together, least in (
        ("synced_portions", averages & repeated, averages, MIN_EXPOSED),
        ("exposed_collectives", averages & ~repeated, averages, MIN_EXPOSED),
        ("exposed_layers", layers, layers, MIN_EXPOSED),
        ("exposed_messages", between_stages, between_stages, MIN_EXPOSED_MESSAGES),
    ):
        if share[together].sum() >= least:
            yield from _exposed(context, cause, np.flatnonzero(mine), share, kind)


def _exposed_time(context: JobContext) -> Floats:
    """Returns for each row of the job (a communication of one rank) the time in ns of its transfer with no work in
    parallel, as if no link was slow.

    All messages of one batch are transferred by one kernel. Its transfer begins when the last message of the batch can
    begin. The first row of a batch has the time of the kernel; the other rows of the batch have 0.
    """
    rows = context.job.rows
    messages = np.isin(rows.operation, P2P)
    transfer = context.waited[1].copy()
    for slow in (slow_rows(context), partly_recorded_slow_rows(context)):
        transfer[slow.rows] *= np.minimum(slow.usual / np.maximum(context.wires.wire[slow.rows], 1.0), 1.0)
    unpaired, usual = context.unpaired
    usual = np.minimum(transfer[unpaired], usual)
    transfer[messages & ~pairs_complete(context)] = 0.0  # such messages may have waited for the other end
    transfer[unpaired] = usual
    order = np.flatnonzero(messages)
    if len(order):
        order = order[np.lexsort((rows.end[order], rows.start[order], rows.rank[order]))]
        first = np.zeros(len(order), np.bool_)
        for times in (rows.rank, rows.start, rows.end):
            first |= np.diff(times[order], prepend=-1) != 0
        least = np.minimum.reduceat(transfer[order], np.flatnonzero(first))
        transfer[order] = 0.0
        transfer[order[first]] = least
    return transfer


def _exposed(context: JobContext, cause: str, mine: Ints, share: Floats, kind: Texts) -> Iterator[Candidate]:
    """Yields the candidate for `cause` with the exposed rows `mine`; none if each combination of operation and kind of
    group takes less than MIN_PART of the step.

    `share` (exposed time / time of all ranks, 0 to 1) and `kind` (kind of the process group) have one element per row
    of the job. Operations of all types form one candidate, because gathers and scatters of one layer run in parallel
    with the same work. Types of operations that take less than MIN_PART of the step are not changed.
    """
    operation = context.job.rows.operation
    names, number = np.unique(kind[mine], return_inverse=True)
    key = number * len(Operation) + operation[mine]
    of_key = np.bincount(key, weights=share[mine])
    large = np.flatnonzero(of_key >= MIN_PART)
    if not len(large):
        return
    chosen, costliest = mine[np.isin(key, large)], int(of_key.argmax())
    facts: dict[str, Fact] = {
        "exposed_share": float(of_key[large].sum()),
        "operation": Operation(costliest % len(Operation)).name.lower(),
        "group": str(names[costliest // len(Operation)]),
    }
    everyone = np.arange(len(context.job.summaries))
    if cause == "exposed_collectives":
        hideable = np.isin(np.arange(len(operation)), chosen)
        most, half = (partial(hidden, rows=hideable, share=part) for part in (1.0, 0.5))
        yield Candidate(cause, everyone, most, facts, low=half)
        yield from _small_messages(context, hideable, facts)
        return
    if cause == "synced_portions":
        # The ranks still wait for one another here, although no exchange forces them to wait.
        yield Candidate(cause, everyone, partial(_left_out, rows=chosen), facts)
        return
    if cause == "exposed_messages" and len(context.unpaired[0]):
        # The recording does not show which part of the waits is for transfers. The mean of none and all is a choice.
        expected, low, high = (partial(_without_messages, rows=chosen, share=part) for part in (0.5, 0.0, 1.0))
        yield Candidate(cause, everyone, expected, facts, low=low, high=high)
        return
    yield Candidate(cause, everyone, None, facts, bound=_left_out(unchanged(context), context, chosen).length(context))


def _small_messages(context: JobContext, rows: Bools, facts: Mapping[str, Fact]) -> Iterator[Candidate]:
    """Yields the candidate for many small exchanges in a job on CPUs. `rows` is a mask of the exposed exchanges, and
    `facts` are their figures for the evidence.

    On devices, small exchanges are hidden like others. On CPUs, each one needs host time of the ranks and of the
    backend's threads, and little compute can hide them.
    """
    summaries, sizes = context.job.summaries, context.job.rows.bytes[rows]
    per_step, size = len(sizes) / (context.steps * len(summaries)), float(np.median(sizes))
    if any(one.facts.device for one in summaries) or per_step < MANY_COLLECTIVES or not 0 < size < SMALL_BYTES:
        return
    expected, low, high = (
        partial(_combined, rows=rows, part=part, transfer=transfer, left=left)
        for part, transfer, left in ((1.0, 1.0, 1.0), (0.5, 1.0, 1.0), (1.0, 0.0, LEFT_ON_FREE_CORES))
    )
    shown = {**facts, "messages": per_step, "message_bytes": size}
    yield Candidate("small_messages", np.arange(len(summaries)), expected, shown, low=low, high=high)


def _combined(changed: Changed, context: JobContext, rows: Bools, part: float, transfer: float, left: float) -> Changed:
    """Returns the job in which the exchanges of the mask `rows` that follow one another are combined into one.

    The combined exchange moves the bytes as fast as the quickest tenth of the exchanges, in `transfer` times this time
    (0 for no time), and the host does nothing between the exchanges. `part` (0 to 1) is the part of this saving that is
    reached. All own time of the ranks is multiplied by `left`.
    """
    sizes, points, step = context.job.rows.bytes[rows], context.graph.points, context.own.step
    quick = sizes / np.quantile(sizes / np.maximum(changed.wire[rows], 1.0), QUICKEST)
    own, wire = left * changed.own, changed.wire.copy()
    wire[rows] += part * np.minimum(transfer * quick - wire[rows], 0.0)
    exchange = rows[points.row]
    follows = exchange & np.append(False, exchange[:-1])
    follows &= (np.diff(points.rank, prepend=-1) == 0) & (np.diff(step, prepend=-1) == 0)
    own[follows, Own.HOST] *= 1 - part
    return replace(changed, own=own, wire=wire)


def _left_out(changed: Changed, context: JobContext, rows: Ints) -> Changed:
    """Returns the job in which the transfers of `rows` take no time. The ranks still wait for each other."""
    return wires_at_most(changed, rows, np.zeros(len(rows)))


def _without_messages(changed: Changed, context: JobContext, rows: Ints, share: float) -> Changed:
    """Returns the job in which the transfers of the messages `rows` take no time.

    Some of these messages also wait for unrecorded ranks. `share` (0 to 1) is the share of these waits that is assumed
    to be for transfers between other ranks. This share of the waits disappears with the transfers. The first and the
    last stage have half as many transfers as the others. Therefore, their waits get shorter at least by the time of
    their own transfers.
    """
    table = context.job.rows
    own, usual = context.unpaired
    wait, transfer = np.zeros(len(table)), np.zeros(len(table))
    wait[own], transfer[own] = np.maximum(changed.wire[own] - usual, 0.0), usual
    sums = [
        np.bincount(table.rank[rows], values[rows], minlength=len(context.job.ranks)) for values in (transfer, wait)
    ]
    ends = np.unique(np.stack((table.rank[rows], table.peer[rows])), axis=1)
    at_end = np.bincount(ends[0], minlength=len(context.job.ranks)) == 1
    for_transfers = np.where(at_end, np.minimum(sums[0] / np.maximum(sums[1], 1.0), 1.0), 0.0)
    left = (1 - for_transfers) * (1 - share)
    return wires_at_most(changed, rows, wait[rows] * left[table.rank[rows]])
