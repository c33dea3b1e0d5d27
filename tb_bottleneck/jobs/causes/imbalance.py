"""Imbalance between ranks, and time in communication that no slow rank explains: slow links, exposed collectives."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tb_bottleneck.base.text import ranks_text
from tb_bottleneck.jobs.causes.candidates import Candidate, expert_skew
from tb_bottleneck.jobs.causes.pipelines import uneven_microbatches, uneven_stages
from tb_bottleneck.jobs.causes.slow_ranks import MIN_EXPERT_SKEW, slow_devices
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.group_kinds import LAYER_KINDS, OVERLAPPED_KINDS
from tb_bottleneck.jobs.pairing.pairs import P2P
from tb_bottleneck.jobs.scenarios import Changed, even_work, hidden, unchanged, wires_at_most
from tb_bottleneck.jobs.summary.rank_summary import Operation, Own
from tb_bottleneck.trace.table import Bools, Floats, Ints

Texts = NDArray[np.str_]

# The slowest rank of a step computes longer than the mean by this share of the step.
MIN_SPREAD = 0.03
# Device time that follows the amount of work: the correlation that sequence lengths reach (OSDI'25, arXiv 2505.05713).
MIN_CORRELATION = 0.8


def imbalance(context: JobContext) -> Iterator[Candidate]:
    """Yields the candidates for work that differs between ranks from step to step, or between stages of a pipeline."""
    slow = slow_devices(context)
    ranks = np.setdiff1d(np.arange(len(context.job.summaries)), slow)
    if context.grid.stages > 1:
        yield from uneven_stages(context, slow)
        yield from uneven_microbatches(context)
    elif len(ranks) > 1 and context.own.by_step:
        yield from _ranks(context, ranks)


def _ranks(context: JobContext, ranks: Ints) -> Iterator[Candidate]:
    device = context.own.own[ranks][:, :, Own.DEVICE]
    mean = np.nanmean(device, axis=0)
    spread = float(np.nanmean(np.nanmax(device, axis=0) - mean))
    correlation = _correlation(device, context.amounts[ranks])
    if spread < MIN_SPREAD * context.step_ns or correlation < MIN_CORRELATION:
        return
    skew = expert_skew(context)
    cause = "expert_imbalance" if skew >= MIN_EXPERT_SKEW else "data_imbalance"
    late = ranks[np.flatnonzero(np.bincount(np.nanargmax(device, axis=0), minlength=len(ranks)))]
    facts = {"spread_ns": spread, "correlation": correlation, "skew": skew}
    yield Candidate(cause, late, even_work, facts)


def _correlation(device: Floats, work: Floats) -> float:
    """Returns the correlation of device time with the amount of work, each relative to its step. Returns 1 if the
    amount is not known, because then device time that varies with the step, not the rank, is the only sign."""
    if np.isnan(work).all() or device.shape != work.shape:
        return 1.0
    a, b = (device - np.nanmean(device, axis=0)).ravel(), (work - np.nanmean(work, axis=0)).ravel()
    known = ~(np.isnan(a) | np.isnan(b))
    if np.std(b[known]) == 0 or np.std(a[known]) == 0:
        return 0.0
    return float(np.corrcoef(a[known], b[known])[0, 1])


# A link is slow if it reaches this share of the bandwidth of its peers.
SLOW_BANDWIDTH = 0.7
# Exposed transfers take this share of the step. Of messages, a part cannot be hidden: the first and the last of a step,
# and in an interleaved pipeline there are several times as many. Both are chosen.
MIN_EXPOSED, MIN_EXPOSED_MESSAGES = 0.10, 0.15
# Of several operations that are exposed together, one with less is left alone.
MIN_PART = 0.01
MIN_CALLS = 3
# The fastest calls of a group of which not all ranks were recorded. It is chosen.
FAST_SHARE = 0.1


class SlowRows(NamedTuple):
    """Rows of slow groups or channels. `time` is for each row the typical time in its channel, `usual` the typical time
    of the same transfer in other channels, in ns."""

    rows: Ints
    time: Floats
    usual: Floats

    def facts(self) -> dict[str, float | str]:
        """Returns the figures for the evidence: the medians of `time` and `usual`."""
        return {"wire_ns": float(np.median(self.time)), "usual_wire_ns": float(np.median(self.usual))}

    def at_usual_speed(self, changed: Changed, context: JobContext) -> Changed:
        """Returns the job with the transfers of `rows` as fast as in other channels."""
        return wires_at_most(changed, self.rows, self.usual)


def slow_links(context: JobContext) -> Iterator[Candidate]:
    """Yields one candidate with all slow groups or channels, which are slower than others of the same kind and size,
    and one with slow groups that have unrecorded ranks, because there, a late rank looks like a slow link."""
    rows, slow, partly = context.job.rows, _slow_rows(context), _partly_recorded_slow_rows(context)
    if len(slow.rows):
        ranks = np.unique(rows.rank[np.isin(context.pairs.pair, context.pairs.pair[slow.rows])])
        yield Candidate("slow_link", ranks, slow.at_usual_speed, slow.facts())
    if len(partly.rows):
        groups = [context.job.groups[group] for group in np.unique(rows.group[partly.rows]).tolist()]
        unrecorded = {rank for group in groups for rank in group.ranks} - set(context.job.ranks)
        facts = {**partly.facts(), "unrecorded": ranks_text(sorted(unrecorded))}
        yield Candidate("slow_group", np.unique(rows.rank[partly.rows]), partly.at_usual_speed, facts)


def _slow_rows(context: JobContext) -> SlowRows:
    """Returns the rows of slow channels whose ranks were all recorded."""
    return _slower_rows(context, np.flatnonzero(_complete(context)), context.wires.wire, np.median)


def _partly_recorded_slow_rows(context: JobContext) -> SlowRows:
    """Returns the rows of slow groups within the layers that have unrecorded ranks. The fastest calls of a group are
    compared, in which no rank was late by chance."""
    job, recorded = context.job, set(context.job.ranks)
    partly = [
        kind in LAYER_KINDS and not recorded.issuperset(group.ranks)
        for kind, group in zip(context.grid.kinds, job.groups, strict=True)
    ]
    chosen = np.flatnonzero(np.array(partly or [False])[job.rows.group] & ~np.isin(job.rows.operation, P2P))
    return _slower_rows(context, chosen, (job.rows.end - job.rows.start).astype(np.float64), _fast)


def _fast(times: Floats) -> float:
    return float(np.quantile(times, FAST_SHARE))


def _slower_rows(context: JobContext, chosen: Ints, times: Floats, typical: Callable[[Floats], float]) -> SlowRows:
    """Returns the rows in `chosen` that belong to a channel that is slower than other channels of the same kind,
    operation and size. `times` has one element per row of the job."""
    rows = context.job.rows
    kinds = np.unique(context.grid.kinds, return_inverse=True)[1] if context.grid.kinds else np.zeros(1, np.int64)
    operation = np.where(np.isin(rows.operation[chosen], P2P), int(Operation.SEND), rows.operation[chosen])
    alike = _number(kinds[rows.group[chosen]], operation, rows.bytes[chosen])
    channel = _number(rows.group[chosen], *_ends(context, chosen))
    time = times[chosen]
    slow = [SlowRows(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))]
    for kind in range(int(alike.max(initial=-1)) + 1):
        mine = np.flatnonzero(alike == kind)
        channels = np.unique(channel[mine])
        of_channel = {of: float(typical(time[mine[channel[mine] == of]])) for of in channels.tolist()}
        lower = sorted(of_channel.values())[(len(of_channel) - 1) // 2]
        for of, value in of_channel.items():
            members = chosen[mine[channel[mine] == of]]
            if len(channels) > 1 and lower < SLOW_BANDWIDTH * value and len(members) >= MIN_CALLS:
                slow.append(SlowRows(members, np.full(len(members), value), np.full(len(members), lower)))
    return SlowRows(*map(np.concatenate, zip(*slow, strict=True)))


def _complete(context: JobContext) -> Bools:
    """Returns a mask of the rows: True if all members of the pair of the row were recorded."""
    complete = context.pairs.pair >= 0
    complete[complete] = context.wires.complete[context.pairs.pair[complete]]
    return np.asarray(complete, np.bool_)


def _ends(context: JobContext, rows: Ints) -> tuple[Ints, Ints]:
    """Returns for each row the lower and the higher rank of the message; -1 for collectives."""
    table = context.job.rows
    own = np.array(context.job.ranks, np.int64)[table.rank[rows]]
    message, peer = np.isin(table.operation[rows], P2P), table.peer[rows]
    return np.where(message, np.minimum(own, peer), -1), np.where(message, np.maximum(own, peer), -1)


def _number(*columns: Ints) -> Ints:
    numbers = np.zeros(len(columns[0]), np.int64)
    for values in columns:
        _, inverse = np.unique(values, return_inverse=True)
        _, numbers = np.unique(numbers * (inverse.max(initial=0) + 1) + inverse, return_inverse=True)
    return numbers.astype(np.int64)


def exposed_transfers(context: JobContext) -> Iterator[Candidate]:
    """Yields a candidate for each kind of transfer that takes a large share of the step without work beside it.

    The kinds are transfers of gradients and parameters, of activations within the layers, and of messages between
    stages. Transfers of gradients and parameters can run beside the work that follows, and those that a later exchange
    repeats can be left out. The other transfers cannot, because the next work needs their results; their gain is the
    bound for a job without these transfers.
    """
    rows = context.job.rows
    if not len(rows):
        return
    share = _exposed_time(context) / (context.step_ns * context.steps * len(context.job.summaries))
    kind, messages = np.array(context.grid.kinds)[rows.group], np.isin(rows.operation, P2P)
    layers = np.isin(kind, LAYER_KINDS)
    between_stages = messages & ~layers & (context.grid.stages > 1)
    averages, repeated = np.isin(kind, OVERLAPPED_KINDS) & ~messages, rows.repeated > 0
    for cause, mine in (
        ("synced_portions", averages & repeated),
        ("exposed_collectives", averages & ~repeated),
        ("exposed_layers", layers),
        ("exposed_messages", between_stages),
    ):
        yield from _exposed(context, cause, np.flatnonzero(mine), share, kind)


def _exposed_time(context: JobContext) -> Floats:
    """Returns for each row the time in ns of its transfer without work beside it, as if no link was slow.

    All messages of one batch are one kernel, which transfers as soon as its last message can. The first row of a batch
    has the time of the kernel.
    """
    rows = context.job.rows
    messages = np.isin(rows.operation, P2P)
    transfer = context.waited[1].copy()
    for slow in (_slow_rows(context), _partly_recorded_slow_rows(context)):
        transfer[slow.rows] *= np.minimum(slow.usual / np.maximum(context.wires.wire[slow.rows], 1.0), 1.0)
    unpaired, usual = context.unpaired
    usual = np.minimum(transfer[unpaired], usual)
    transfer[messages & ~_complete(context)] = 0.0  # these may have waited for the other end
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
    """Yields a candidate if the rows `mine` are exposed for a large share of the step.

    `share` and `kind` have one element per row of the job. All operations count together, because gathers and scatters
    of one layer run beside the same work. Operations with a small part are not changed.
    """
    operation = context.job.rows.operation
    names, number = np.unique(kind[mine], return_inverse=True)
    key = number * len(Operation) + operation[mine]
    of_key = np.bincount(key, weights=share[mine])
    if of_key.sum() < (MIN_EXPOSED_MESSAGES if cause == "exposed_messages" else MIN_EXPOSED):
        return
    large = np.flatnonzero(of_key >= MIN_PART)
    chosen, costliest = mine[np.isin(key, large)], int(of_key.argmax())
    facts: dict[str, float | str] = {
        "exposed_share": float(of_key[large].sum()),
        "operation": Operation(costliest % len(Operation)).name.lower(),
        "group": str(names[costliest // len(Operation)]),
    }
    everyone = np.arange(len(context.job.summaries))
    if cause == "exposed_collectives":
        hideable = np.isin(np.arange(len(operation)), chosen)
        most, half = (partial(hidden, rows=hideable, share=part) for part in (1.0, 0.5))
        yield Candidate(cause, everyone, most, facts, low=half)
        return
    if cause == "synced_portions":
        # The ranks still wait for one another here, although no exchange makes them.
        yield Candidate(cause, everyone, partial(_left_out, rows=chosen), facts)
        return
    if cause == "exposed_messages" and len(context.unpaired[0]):
        # Which part of the waits is for transfers was not recorded. The mean of none and all is a choice.
        expected, low, high = (partial(_without_messages, rows=chosen, share=part) for part in (0.5, 0.0, 1.0))
        yield Candidate(cause, everyone, expected, facts, low=low, high=high)
        return
    yield Candidate(cause, everyone, None, facts, bound=_left_out(unchanged(context), context, chosen).length(context))


def _left_out(changed: Changed, context: JobContext, rows: Ints) -> Changed:
    return wires_at_most(changed, rows, np.zeros(len(rows)))


def _without_messages(changed: Changed, context: JobContext, rows: Ints, share: float) -> Changed:
    """Returns the job without the transfers of the messages `rows`. Some of them wait for ranks that were not recorded,
    and `share` of these waits ends with the transfers: none at least, all at most.

    The first and the last stage have half of the transfers of the others, so they wait for as many as they have.
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
