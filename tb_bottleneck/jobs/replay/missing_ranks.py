"""Completes the graph of a job with its missing ranks, which behave like recorded peers.

A rank that waits for a missing rank would wait less if a third rank, on which both depend, were faster. Therefore, each
missing rank that a recorded rank waits for gets the own work, the order of communications and the wire times of a
recorded peer. The peer has the same position in its groups as the missing rank in the corresponding groups. Of several
possible peers, ranks whose wire times (times of transfers) are all known are preferred, then ranks that share layers
with the missing rank, then the nearest rank numbers.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from tb_bottleneck.jobs.group_kinds import LAYER_KINDS, Grid
from tb_bottleneck.jobs.pairing.clocks import Clocks
from tb_bottleneck.jobs.pairing.job_table import JobRows, JobTable
from tb_bottleneck.jobs.pairing.pairs import P2P, Pairs, ids_of, positions
from tb_bottleneck.jobs.replay.job_graph import JobGraph, job_graph
from tb_bottleneck.jobs.replay.sweep import Result, sweep
from tb_bottleneck.jobs.replay.waits import RankPoints
from tb_bottleneck.jobs.summary.rank_summary import Operation
from tb_bottleneck.trace.table import Bools, Floats, Ints

UNKNOWN = -2
MAX_TRIED = 64
"""Largest number of peers that are tried for a missing rank."""


@dataclass(frozen=True, eq=False)
class CompleteGraph:
    """The dependency graph of the recorded ranks and of missing ranks, which behave like recorded peers.

    The points, rows and ranks of missing ranks come after those of recorded ranks. `point` maps each point of the graph
    to the recorded point with the same times; a recorded point is mapped to itself. `row` and `rank` do the same for
    rows and ranks. `pair` has the pair of each row, or -1. `missing` are the numbers of the missing ranks.
    """

    graph: JobGraph
    point: Ints
    row: Ints
    rank: Ints
    pair: Ints
    missing: tuple[int, ...] = ()

    def simulated(self, own: Floats, wire: Floats, tail: Floats) -> Result:
        """Returns the result of a simulation. `own`, `wire` and `tail` are as in sweep, but only for recorded points,
        rows and ranks."""
        return sweep(self.graph, own[self.point], self._wires(wire), tail[self.rank])

    def _wires(self, recorded: Floats) -> Floats:
        """Returns the wire times (time of the transfer) of all rows in ns, from those of the recorded rows.

        In a pair (the rows of one operation) with a missing rank, all rows get the shortest wire time of the pair,
        because the longer times may contain waits for missing ranks.
        """
        wire, added = recorded[self.row], np.arange(len(self.row)) >= len(recorded)
        if added.any():
            count, paired = int(self.pair.max(initial=-1)) + 1, self.pair >= 0
            least, partly = np.full(count, np.inf), np.zeros(count, np.bool_)
            np.minimum.at(least, self.pair[paired], wire[paired])
            partly[self.pair[paired & added]] = True
            wire[paired] = np.where(partly[self.pair[paired]], least[self.pair[paired]], wire[paired])
        return wire


def as_recorded(graph: JobGraph, pairs: Pairs) -> CompleteGraph:
    """Returns `graph`, the graph of the recorded ranks, as a CompleteGraph without missing ranks."""
    points, rows, ranks = len(graph.points), len(pairs.pair), len(graph.tail)
    return CompleteGraph(graph, np.arange(points), np.arange(rows), np.arange(ranks), pairs.pair)


def complete_graph(job: JobTable, pairs: Pairs, clocks: Clocks, grid: Grid, recorded: CompleteGraph) -> CompleteGraph:
    """Returns the graph of a job with the missing ranks that recorded ranks wait for.

    `recorded` is the graph of the recorded ranks. This graph is returned unchanged if no rank waits for a missing rank,
    if no recorded rank can stand for a missing one, if the steps are not numbered, or if the completed graph has a
    cycle.
    """
    peers = _Peers(job, pairs, grid).found() if job.numbered else []
    graph = recorded.graph
    if not peers:
        return recorded
    like = np.array([peer.position for peer in peers])
    rank = np.concatenate((recorded.rank, like))
    row = np.concatenate((recorded.row, *(np.arange(job.first[p], job.first[p + 1]) for p in like.tolist())))
    first = np.cumsum([0, *np.diff(job.first)[rank]])
    point = np.concatenate((recorded.point, *(np.flatnonzero(graph.points.rank == p) for p in like.tolist())))
    all_ranks = replace(
        job, summaries=tuple(job.summaries[p] for p in rank.tolist()), rows=_rows(job, peers, row, first), first=first
    )
    all_pairs = _with_rows(pairs, all_ranks, (*job.ranks, *(peer.missing for peer in peers)))
    all_clocks = replace(clocks, offset=clocks.offset[rank], drift=clocks.drift[rank])
    added = np.bincount(graph.points.rank, minlength=len(job.ranks))[like]
    points = _points(graph.points, point, added, first, job.first[rank])
    completed = job_graph(all_ranks, all_pairs, all_clocks, points)
    if len(completed.levels.left):
        return recorded
    return CompleteGraph(completed, point, row, rank, all_pairs.pair, tuple(peer.missing for peer in peers))


@dataclass(frozen=True)
class _Peer:
    """The missing rank with the number `missing`, and the position of the recorded rank that it behaves like.

    `groups` maps each process group (row of the job's groups) that the recorded rank uses to the corresponding group of
    the missing rank, or to UNKNOWN if the recording does not show such a group.
    """

    missing: int
    position: int
    groups: dict[int, int]


class _Peers:
    """Finds for each missing rank the recorded rank that it is assumed to behave like."""

    def __init__(self, job: JobTable, pairs: Pairs, grid: Grid) -> None:
        self._job, self._grid = job, grid
        self._alone = np.flatnonzero(pairs.pair < 0)
        messages = np.bincount(job.rows.group[np.isin(job.rows.operation, P2P)], minlength=len(job.groups)) > 0
        self._exchanges = messages.tolist()
        self._groups_of: defaultdict[int, list[int]] = defaultdict(list)
        for row, group in enumerate(job.groups):
            for rank in group.ranks:
                self._groups_of[rank].append(row)

    def found(self) -> list[_Peer]:
        """Returns the missing ranks that rows without a pair wait for, with their peers. Missing ranks without a
        suitable peer are left out. Returns an empty list if there are more missing than recorded ranks."""
        job, rows = self._job, self._job.rows
        missing = set(rows.peer[self._alone].tolist()) - {-1}
        for row in np.unique(rows.group[self._alone[rows.peer[self._alone] < 0]]).tolist():
            missing |= set(job.groups[row].ranks)
        missing -= set(job.ranks)
        if len(missing) > len(job.ranks):
            return []
        used = [np.unique(rows.group[job.first[p] : job.first[p + 1]]).tolist() for p in range(len(job.ranks))]
        uncertain = (
            np.bincount(rows.rank[self._alone], minlength=len(job.ranks)) > 0
        )  # ranks for which some wire times are not known
        found = (self._peer(rank, used, uncertain) for rank in sorted(missing) if rank in self._groups_of)
        return [peer for peer in found if peer is not None]

    def _peer(self, missing: int, used: Sequence[Sequence[int]], uncertain: Bools) -> _Peer | None:
        """Returns the best peer of the rank `missing`; None if there is none. `used` has the groups that each recorded
        rank uses, `uncertain` is a mask of the recorded ranks for which some wire times (time of the transfer) are not
        known."""
        ranks, kinds = self._job.ranks, self._grid.kinds
        layers = (self._job.groups[row] for row in self._groups_of[missing] if kinds[row] in LAYER_KINDS)
        near = {rank for group in layers for rank in group.ranks}
        likeness = [(uncertain[p], ranks[p] not in near, abs(ranks[p] - missing), p) for p in range(len(ranks))]
        for *_, position in sorted(likeness)[:MAX_TRIED]:
            groups = {row: self._group_of(row, ranks[position], missing) for row in used[position]}
            if None not in groups.values():
                return _Peer(missing, position, {row: group for row, group in groups.items() if group is not None})
        return None

    def _group_of(self, row: int, peer: int, missing: int) -> int | None:
        """Returns the group of the rank `missing` that corresponds to the group `row` of the rank `peer`.

        Returns UNKNOWN if `missing` has no group of this kind, and None if `peer` cannot stand for `missing`: the two
        ranks have different places in their groups, or are both in a group with messages.
        """
        group, kind = self._job.groups[row], self._grid.kinds[row]
        if missing in group.ranks:
            return None if self._exchanges[row] else row
        place = group.ranks.index(peer) if peer in group.ranks else -1
        different: int | None = UNKNOWN
        for other in self._groups_of[missing]:
            alike = self._job.groups[other]
            if self._grid.kinds[other] == kind and alike.description == group.description:
                if len(alike.ranks) == len(group.ranks) and place >= 0 and alike.ranks[place] == missing:
                    return other
                different = None
        return different


def _rows(job: JobTable, peers: Sequence[_Peer], row: Ints, first: Ints) -> JobRows:
    """Returns the rows of recorded and missing ranks. The rows of a missing rank are copies of those of its peer, with
    the groups and message peers of the missing rank.

    `row` has the recorded row that each row copies, `first` the first row of each rank.
    """
    rows = job.rows.take(row)
    group, counterpart = rows.group.copy(), rows.peer.copy()
    for number, peer in enumerate(peers, len(job.ranks)):
        mine = np.arange(first[number], first[number + 1])
        for old, new in peer.groups.items():
            of_group = mine[rows.group[mine] == old]
            group[of_group] = new
            messages = of_group[rows.peer[of_group] >= 0]
            members = dict(zip(job.groups[old].ranks, job.groups[new].ranks, strict=False)) if new >= 0 else {}
            counterpart[messages] = [members.get(rank, UNKNOWN) for rank in rows.peer[messages].tolist()]
    position = np.repeat(np.arange(len(first) - 1), np.diff(first))
    return replace(rows, rank=position, group=group, peer=counterpart)


def _with_rows(pairs: Pairs, job: JobTable, ranks: tuple[int, ...]) -> Pairs:
    """Returns the pairs including the rows of missing ranks, which are paired by group, step and position in the step.

    `pairs` are the pairs of the recorded rows, which are kept. `job` and `ranks` (the numbers of the ranks) include
    missing ranks.
    """
    rows, recorded = job.rows, len(pairs.pair)
    messages = np.isin(rows.operation, P2P)
    own = np.array(ranks, np.int64)[rows.rank]
    sends = rows.operation == Operation.SEND
    source, target = (
        np.where(messages, of, -1) for of in (np.where(sends, own, rows.peer), np.where(sends, rows.peer, own))
    )
    operation = np.where(messages, int(Operation.SEND), rows.operation)
    place = (rows.group, operation, source, target, rows.step)
    ids = ids_of((*place, positions(ids_of((rows.rank, rows.operation, *place)), rows.order)))
    known = np.full(int(ids.max(initial=0)) + 1, -1)
    np.maximum.at(known, ids[:recorded], pairs.pair)
    added, usable = np.arange(len(ids)) >= recorded, (rows.group >= 0) & (rows.peer >= -1)
    fresh = np.flatnonzero((known < 0) & (np.bincount(ids[added & usable], minlength=len(known)) > 0))
    fresh = fresh[np.bincount(ids[usable], minlength=len(known))[fresh] > 1]
    known[fresh] = pairs.count + np.arange(len(fresh))
    pair = np.where(usable, known[ids], -1)
    pair[:recorded] = np.where(
        pairs.pair >= 0, pairs.pair, np.where(known[ids[:recorded]] >= pairs.count, known[ids[:recorded]], -1)
    )
    return replace(pairs, pair=pair, count=pairs.count + len(fresh))


def _points(points: RankPoints, chosen: Ints, added: Ints, first: Ints, first_like: Ints) -> RankPoints:
    """Returns the points of recorded and missing ranks. `chosen` has the recorded point that each point copies.

    `added` has the number of points of each missing rank. `first` has the first row of each rank, `first_like` the
    first recorded row of the rank that it behaves like.
    """
    ranks = len(first_like) - len(added)
    rank = np.concatenate((points.rank, np.repeat(np.arange(ranks, len(first_like)), added)))
    columns = {item.name: getattr(points, item.name)[chosen] for item in fields(RankPoints)}
    columns |= {"rank": rank, "row": columns["row"] - first_like[rank] + first[rank]}
    return RankPoints(**columns)
