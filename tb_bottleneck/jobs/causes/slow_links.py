"""Links that are slower than others of the same kind, between ranks that are not slow themselves."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from tb_bottleneck.jobs.causes.candidates import Candidate, Fact
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.group_kinds import LAYER_KINDS
from tb_bottleneck.jobs.pairing.pairs import P2P
from tb_bottleneck.jobs.scenarios import Changed, wires_at_most
from tb_bottleneck.jobs.summary.rank_summary import Operation
from tb_bottleneck.trace.table import Bools, Floats, Ints

# A link is slow if it reaches less than this share of the bandwidth of links of the same kind.
SLOW_BANDWIDTH = 0.7
MIN_CALLS = 3
# Quantile of the durations of a group with unrecorded ranks at which calls count as fast. Chosen.
FAST_SHARE = 0.1


class SlowRows(NamedTuple):
    """Rows (communications of one rank) in slow channels. A channel is a process group or, for messages, a pair of
    ranks.

    `time` has for each row the typical time of its channel, `usual` the lower median of the typical times of all
    channels with the same kind of group, operation and size. Both are in ns.
    """

    rows: Ints
    time: Floats
    usual: Floats

    def facts(self) -> dict[str, Fact]:
        """Returns the figures for the evidence: the medians of `time` and `usual`."""
        return {"wire_ns": float(np.median(self.time)), "usual_wire_ns": float(np.median(self.usual))}

    def at_usual_speed(self, changed: Changed, context: JobContext) -> Changed:
        """Returns the changed job in which the transfers of `rows` take at most the usual time of other channels."""
        return wires_at_most(changed, self.rows, self.usual)


def slow_links(context: JobContext) -> Iterator[Candidate]:
    """Yields up to two candidates for slow channels (groups, or pairs of ranks that exchange messages).

    "slow_link" has the ranks of all slow channels whose ranks were all recorded. "slow_group" has the recorded ranks of
    slow groups that also have unrecorded ranks, where the cause may also be an unrecorded rank that is late.
    """
    rows, slow, partly = context.job.rows, slow_rows(context), partly_recorded_slow_rows(context)
    if len(slow.rows):
        ranks = np.unique(rows.rank[np.isin(context.pairs.pair, context.pairs.pair[slow.rows])])
        yield Candidate("slow_link", ranks, slow.at_usual_speed, slow.facts())
    if len(partly.rows):
        groups = [context.job.groups[group] for group in np.unique(rows.group[partly.rows]).tolist()]
        unrecorded = {rank for group in groups for rank in group.ranks} - set(context.job.ranks)
        facts = {**partly.facts(), "unrecorded": sorted(unrecorded)}
        yield Candidate("slow_group", np.unique(rows.rank[partly.rows]), partly.at_usual_speed, facts)


def slow_rows(context: JobContext) -> SlowRows:
    """Returns the communications in slow channels (process groups, or pairs of ranks). Only channels of which all ranks
    were recorded are compared."""
    return _slower_rows(context, np.flatnonzero(pairs_complete(context)), context.wires.wire, np.median)


def partly_recorded_slow_rows(context: JobContext) -> SlowRows:
    """Returns the rows of slow groups that have unrecorded ranks and communicate within the layers (LAYER_KINDS).

    The fast calls of each group are compared (the FAST_SHARE quantile of the durations), because no rank was late in a
    fast call.
    """
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
    """Returns those of the rows `chosen` whose channel is slower than other channels with the same kind of group,
    operation and size.

    `times` has one time (ns) per row of the job. `typical` reduces the times of a channel to one time. A channel (a
    process group or a pair of ranks) is slow if the lower median of the typical times of all such channels is less than
    SLOW_BANDWIDTH times its own typical time, and the channel has at least MIN_CALLS of the rows.
    """
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


def pairs_complete(context: JobContext) -> Bools:
    """Returns a mask of the rows of the job that belong to a pair in which all ranks of the operation were recorded."""
    complete = context.pairs.pair >= 0
    complete[complete] = context.wires.complete[context.pairs.pair[complete]]
    return np.asarray(complete, np.bool_)


def _ends(context: JobContext, rows: Ints) -> tuple[Ints, Ints]:
    """Returns two arrays with one value per row in `rows`: the lower and the higher rank number of the two ends of a
    message; -1 for collectives."""
    table = context.job.rows
    own = np.array(context.job.ranks, np.int64)[table.rank[rows]]
    message, peer = np.isin(table.operation[rows], P2P), table.peer[rows]
    return np.where(message, np.minimum(own, peer), -1), np.where(message, np.maximum(own, peer), -1)


def _number(*columns: Ints) -> Ints:
    """Returns for each row a number from 0 that identifies the combination of its values in `columns`."""
    numbers = np.zeros(len(columns[0]), np.int64)
    for values in columns:
        _, inverse = np.unique(values, return_inverse=True)
        _, numbers = np.unique(numbers * (inverse.max(initial=0) + 1) + inverse, return_inverse=True)
    return numbers.astype(np.int64)
