"""Pairs collectives and messages across the ranks of a job.

In order of trust, at one level for all collectives of a job: Comms Id; group and sequence number; group, step and
position in the step; for recordings without groups also the operation and the size. A message is the n-th of its step
from one rank to another in its group: sequence numbers of senders and receivers are counted apart.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.jobs.pairing.job_table import JobRows, JobTable
from tb_bottleneck.jobs.pairing.ordinals import UNKNOWN, ordinals_of
from tb_bottleneck.jobs.summary.rank_summary import Operation
from tb_bottleneck.trace.table import Bools, Ints

P2P = (int(Operation.SEND), int(Operation.RECV))
SIZED = tuple(int(op) for op in (Operation.ALL_REDUCE, Operation.BROADCAST, Operation.REDUCE))
"""Operations in which all ranks have the same number of bytes. Gathers of shards may be uneven."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Sets of rows that are one operation.

    `pair` has the number of each row's pair, or -1. `wrong` counts rows in pairs that contradict themselves, `unpaired`
    rows without a counterpart although their group has other recorded ranks. `level` is how the pairs were found.
    """

    pair: Ints
    count: int
    level: str
    wrong: int
    unpaired: int

    def without(self, pairs: Bools) -> "Pairs":
        """Returns the pairs without some that are wrong."""
        bad = (self.pair >= 0) & pairs[self.pair]
        return _numbered(np.where(bad, -1, self.pair), self.level, self.wrong + int(bad.sum()), self.unpaired)


def pairs_of(job: JobTable) -> Pairs:
    """Returns the pairs of a job."""
    rows = job.rows
    messages = np.isin(rows.operation, P2P)
    key, level = _keys(job, ~messages)
    ids = ids_of(key)
    ids[messages] = _message_ids(job, messages) + (ids.max(initial=0) + 1)
    ids[(key[0] == UNKNOWN) & ~messages] = -1
    single = _counts(ids) == 1
    alone = (ids >= 0) & single[ids]
    ids = np.where(alone, -1, ids)
    contradicting = _contradicting(rows, ids)
    bad = (ids >= 0) & contradicting[ids]
    unpaired = int(((ids < 0) & _has_recorded_peers(job)).sum())
    return _numbered(np.where(bad, -1, ids), level, int(bad.sum()), unpaired)


def _keys(job: JobTable, collectives: Bools) -> tuple[tuple[Ints, ...], str]:
    """Returns the columns that identify a collective, and the name of the level."""
    rows = job.rows
    zero = np.zeros(len(rows), np.int64)
    if collectives.any() and (rows.key[collectives] != 0).all():
        return (zero, rows.key), "id"
    named = np.array([bool(group.name) for group in job.groups] or [False])[rows.group] if len(rows) else collectives
    if collectives.any() and named[collectives].all() and (rows.sequence[collectives] >= 0).all():
        return (zero, rows.group, rows.sequence), "sequence"
    known = bool(named[collectives].all())
    classes = ids_of((rows.group, *(() if known else (rows.operation, _size(rows)))))
    step, ordinal = ordinals_of(job, np.where(collectives, classes, -1))
    return (step, classes, ordinal), "order" if known else "size"


def _size(rows: JobRows) -> Ints:
    """Returns the sizes that all ranks share, else 0."""
    return np.where(np.isin(rows.operation, SIZED), rows.bytes, 0)


def _message_ids(job: JobTable, messages: Bools) -> Ints:
    """Returns the identity of each message: group, sender, receiver, step, n-th."""
    rows = job.rows
    own = np.array(job.ranks, np.int64)[rows.rank[messages]]
    peer, sends = rows.peer[messages], rows.operation[messages] == Operation.SEND
    source, target = np.where(sends, own, peer), np.where(sends, peer, own)
    channel = ids_of((rows.rank[messages], rows.group[messages], source, target, sends.astype(np.int64)))
    step = rows.step[messages] if job.numbered else np.zeros(len(own), np.int64)
    position = positions(ids_of((channel, step)), rows.order[messages])
    known = peer >= 0
    ids = ids_of((rows.group[messages], source, target, step, position))
    return np.where(known, ids, ids.max(initial=0) + 1 + np.arange(len(ids)))


def positions(classes: Ints, order: Ints) -> Ints:
    """Returns the position of each row among those of its class, by order."""
    by_class = np.lexsort((order, classes))
    sorted_classes = classes[by_class]
    first = np.searchsorted(sorted_classes, sorted_classes, side="left")
    position = np.empty(len(classes), np.int64)
    position[by_class] = np.arange(len(classes)) - first
    return position


def ids_of(columns: tuple[Ints, ...]) -> Ints:
    """Returns one number per distinct combination of values."""
    ids = np.zeros(len(columns[0]), np.int64)
    for values in columns:
        _, inverse = np.unique(values, return_inverse=True)
        _, ids = np.unique(ids * (inverse.max(initial=0) + 1) + inverse, return_inverse=True)
    return ids.astype(np.int64)


def _counts(ids: Ints) -> Ints:
    return np.bincount(ids[ids >= 0], minlength=int(ids.max(initial=0)) + 1)


def _contradicting(rows: JobRows, ids: Ints) -> Bools:
    """Returns per pair: True if its operations or sizes differ, or if a rank is in it twice."""
    count = int(ids.max(initial=0)) + 1
    paired = ids >= 0
    operation = np.where(np.isin(rows.operation, P2P), int(Operation.SEND), rows.operation)
    sized = np.where(np.isin(rows.operation, (*SIZED, *P2P)) & (rows.bytes > 0), rows.bytes, 0)
    wrong = np.zeros(count, np.bool_)
    for values in (operation, sized):
        low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
        np.minimum.at(low, ids[paired], values[paired])
        np.maximum.at(high, ids[paired], values[paired])
        wrong |= (high > low) & (low > 0)
    twice = ids_of((ids, rows.rank))
    repeated = (np.bincount(twice)[twice] > 1) & paired
    wrong[ids[repeated]] = True
    return wrong


def _has_recorded_peers(job: JobTable) -> Bools:
    """Returns per row: True if another recorded rank is in its group (of a message: if it is the peer)."""
    recorded = set(job.ranks)
    several = np.array([len(recorded & set(group.ranks)) > 1 for group in job.groups] or [False])
    rows = job.rows
    messages = np.isin(rows.operation, P2P)
    return np.where(messages, np.isin(rows.peer, job.ranks), several[rows.group] if len(rows) else False)


def _numbered(ids: Ints, level: str, wrong: int, unpaired: int) -> Pairs:
    kept, inverse = np.unique(ids[ids >= 0], return_inverse=True)
    pair = np.full(len(ids), -1)
    pair[ids >= 0] = inverse
    return Pairs(pair, len(kept), level, wrong, unpaired)
