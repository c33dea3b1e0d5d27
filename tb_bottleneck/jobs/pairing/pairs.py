"""Pairs collectives and messages across the ranks of a job: finds the rows that belong to the same operation."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from tb_bottleneck.jobs.pairing.job_table import JobRows, JobTable
from tb_bottleneck.jobs.summary.rank_summary import Operation
from tb_bottleneck.trace.table import Bools, Ints, Rows

UNKNOWN = -(1 << 40)
"""The step of a row that could not be numbered."""

# Smallest share of the compared operations of two ranks that must agree if one sequence is shifted against the other.
MIN_AGREEMENT = 0.95
# Smallest number of operations that a shift must compare to count.
MIN_COMMON = 8
MAX_SHIFTS = 512
# Longer sequences of one step are not aligned: the time grows with the square of the length.
MAX_ALIGNED = 4096
_Token = tuple[int, int]


def ordinals_of(job: JobTable, classes: Ints) -> tuple[Ints, Ints]:
    """Returns two arrays with a number for each row: its step, and its position among the rows of its class in that
    step.

    `classes` has the class of each row: the number of its process group, or of its combination of group, operation and
    size; -1 leaves the row out. Rows of one collective get the same class, step and position on all ranks. The step of
    a row that cannot be numbered is UNKNOWN.

    In a job with numbered steps, a rank may lack rows that other ranks have. Its rows are then aligned to the most
    frequent sequence of all ranks, and only rows that match are numbered. In a job without numbered steps, the step is
    0 and the position counts from the first row of the rank with the most rows; see _shift for how other ranks are
    aligned to it.
    """
    step, ordinal = np.full(len(classes), UNKNOWN), np.zeros(len(classes), np.int64)
    for rows_of_rank in _sequences(job, classes).values():
        number = _in_steps if job.numbered else _in_recording
        number(job, rows_of_rank, step, ordinal)
    return step, ordinal


def _sequences(job: JobTable, classes: Ints) -> dict[int, dict[int, Rows]]:
    """Returns for each class in `classes` a dict from the position of a rank to its rows of this class, in order of
    issue. Rows with class -1 are left out."""
    found: defaultdict[int, dict[int, Rows]] = defaultdict(dict)
    chosen = np.flatnonzero(classes >= 0)
    order = chosen[np.lexsort((job.rows.order[chosen], job.rows.rank[chosen], classes[chosen]))]
    keys = np.stack((classes[order], job.rows.rank[order]), axis=1)
    edges = np.flatnonzero(np.any(np.diff(keys, axis=0, prepend=-1) != 0, axis=1)) if len(order) else order
    for part in np.split(order, edges[1:]):
        if len(part):
            found[int(classes[part[0]])][int(job.rows.rank[part[0]])] = part
    return found


def _tokens(job: JobTable, rows: Rows) -> list[_Token]:
    """Returns for each of `rows` the pair (operation, bytes), by which rows are compared between ranks. The bytes of an
    all-to-all are 0, because they may differ between ranks."""
    operation, size = job.rows.operation[rows], job.rows.bytes[rows]
    varying = operation == Operation.ALL_TO_ALL
    return list(zip(operation.tolist(), np.where(varying, 0, size).tolist(), strict=True))


def _in_steps(job: JobTable, rows_of_rank: dict[int, Rows], step: Ints, ordinal: Ints) -> None:
    """Writes the step and the position in the step of the rows of one class into `step` and `ordinal`, in a job with
    numbered steps. `rows_of_rank` maps positions of ranks to their rows of this class."""
    by_step: defaultdict[int, list[Rows]] = defaultdict(list)
    for rows in rows_of_rank.values():
        numbers = job.rows.step[rows]
        for part in np.split(rows, np.flatnonzero(np.diff(numbers)) + 1):
            by_step[int(job.rows.step[part[0]])].append(part)
    for number, parts in by_step.items():
        sequences = [_tokens(job, part) for part in parts]
        usual = list(Counter(map(tuple, sequences)).most_common(1)[0][0])
        for part, sequence in zip(parts, sequences, strict=True):
            _assign(part, sequence, usual, number, step, ordinal)


def _assign(part: Rows, sequence: list[_Token], usual: list[_Token], number: int, step: Ints, ordinal: Ints) -> None:
    """Writes the numbers of the rows `part` of one rank in step `number`. `sequence` are the tokens of these rows (see
    _tokens), `usual` the most frequent sequence of tokens over all ranks. The numbers are written into `step` and
    `ordinal`. If `sequence` and `usual` differ, only matching rows are numbered."""
    if sequence == usual:
        step[part], ordinal[part] = number, np.arange(len(part))
        return
    if max(len(sequence), len(usual)) > MAX_ALIGNED:
        return
    for block in SequenceMatcher(None, usual, sequence, autojunk=False).get_matching_blocks():
        rows = part[block.b : block.b + block.size]
        step[rows], ordinal[rows] = number, np.arange(block.a, block.a + block.size)


def _in_recording(job: JobTable, rows_of_rank: dict[int, Rows], step: Ints, ordinal: Ints) -> None:
    """Writes step 0 and the position in the recording of the rows of one class into `step` and `ordinal`, in a job
    without numbered steps. `rows_of_rank` maps positions of ranks to their rows of this class."""
    reference = max(rows_of_rank.values(), key=len)
    for rows in rows_of_rank.values():
        shift = 0 if rows is reference else _shift(job, reference, rows)
        if shift is not None:
            step[rows], ordinal[rows] = 0, np.arange(len(rows)) + shift


def _shift(job: JobTable, reference: Rows, rows: Rows) -> int | None:
    """Returns the position in `reference` of the first of `rows` (negative if it is before `reference`).

    `reference` and `rows` are the rows of one rank each. At the returned shift, at least MIN_AGREEMENT of the compared
    operations and sizes agree. If several shifts agree, the shift with the smallest median difference of the ends is
    returned, provided that this difference is less than a quarter of the second smallest. Otherwise, and if no shift
    agrees, returns None.
    """
    ids: dict[_Token, int] = {}
    one, other = (np.array([ids.setdefault(token, len(ids)) for token in _tokens(job, of)]) for of in (reference, rows))
    ends_one, ends_other = job.rows.end[reference], job.rows.end[rows]
    least = min(MIN_COMMON, len(one), len(other))
    good: list[tuple[float, int]] = []
    for shift in range(-min(len(other), MAX_SHIFTS), min(len(one), MAX_SHIFTS)):
        length = min(len(one) - max(shift, 0), len(other) - max(-shift, 0))
        a, b = (slice(begin, begin + length) for begin in (max(shift, 0), max(-shift, 0)))
        if length >= least and (one[a] == other[b]).mean() >= MIN_AGREEMENT:
            good.append((abs(float(np.median(ends_one[a] - ends_other[b]))), shift))
    good.sort()
    clear = len(good) == 1 or (len(good) > 1 and good[0][0] < good[1][0] / 4)
    return good[0][1] if clear else None


P2P = (int(Operation.SEND), int(Operation.RECV))
SIZED = tuple(int(op) for op in (Operation.ALL_REDUCE, Operation.BROADCAST, Operation.REDUCE))
"""Operations in which all ranks have the same number of bytes. In gathers of shards, ranks may have different sizes."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of a job. A pair is the set of rows, of two or more ranks, that belong to the same operation.

    `pair` has the number of the pair of each row, from 0, or -1. `count` is the number of pairs. `level` says how the
    collectives were identified: "id", "sequence", "order" or "size" (see pairs_of). `wrong` is the number of rows in
    pairs that contradict themselves. `unpaired` is the number of rows without a pair although other ranks of their
    group were recorded.
    """

    pair: Ints
    count: int
    level: str
    wrong: int
    unpaired: int

    def without(self, pairs: Bools) -> "Pairs":
        """Returns the pairs without those in the mask `pairs`. Their rows count as wrong."""
        bad = (self.pair >= 0) & pairs[self.pair]
        return _numbered(np.where(bad, -1, self.pair), self.level, self.wrong + int(bad.sum()), self.unpaired)


def pairs_of(job: JobTable) -> Pairs:
    """Returns the pairs of a job.

    All collectives of a job are identified by the first of these that was recorded: (1) "id": Comms Id; (2) "sequence":
    group, operation and sequence number; (3) "order": group, step and position in the step; (4) "size": as (3), but the
    position is counted among rows with the same operation and size, for recordings that do not name the groups. A
    message is identified as the n-th message of its step from one rank to another in its group, because senders and
    receivers count sequence numbers separately.
    """
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
    """Returns the columns (one value per row) whose combination identifies a collective, and the level (see pairs_of).
    If the step of a row is UNKNOWN, the row cannot be identified.

    `collectives` is a mask of the rows that are no messages.
    """
    rows = job.rows
    zero = np.zeros(len(rows), np.int64)
    if collectives.any() and (rows.key[collectives] != 0).all():
        return (zero, rows.key), "id"
    named = np.array([bool(group.name) for group in job.groups] or [False])[rows.group] if len(rows) else collectives
    if collectives.any() and named[collectives].all() and (rows.sequence[collectives] >= 0).all():
        return (zero, rows.group, rows.operation, rows.sequence), "sequence"
    known = bool(named[collectives].all())
    classes = ids_of((rows.group, *(() if known else (rows.operation, _size(rows)))))
    step, ordinal = ordinals_of(job, np.where(collectives, classes, -1))
    return (step, classes, ordinal), "order" if known else "size"


def _size(rows: JobRows) -> Ints:
    """Returns the size in bytes of each row, or 0 for operations in which the sizes of the ranks may differ."""
    return np.where(np.isin(rows.operation, SIZED), rows.bytes, 0)


def _message_ids(job: JobTable, messages: Bools) -> Ints:
    """Returns a number for each row in the mask `messages`, which is equal for both ends of a message.

    The number identifies the group, sender, receiver, step and position in the step. A row whose other rank was not
    recorded gets a number of its own.
    """
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
    """Returns the position of each row, from 0, among the rows of the same class in ascending `order`. `classes` and
    `order` have one number per row."""
    by_class = np.lexsort((order, classes))
    sorted_classes = classes[by_class]
    first = np.searchsorted(sorted_classes, sorted_classes, side="left")
    position = np.empty(len(classes), np.int64)
    position[by_class] = np.arange(len(classes)) - first
    return position


def ids_of(columns: tuple[Ints, ...]) -> Ints:
    """Returns for each row a number from 0 that identifies the combination of its values in `columns`."""
    ids = np.zeros(len(columns[0]), np.int64)
    for values in columns:
        _, inverse = np.unique(values, return_inverse=True)
        _, ids = np.unique(ids * (inverse.max(initial=0) + 1) + inverse, return_inverse=True)
    return ids.astype(np.int64)


def _counts(ids: Ints) -> Ints:
    return np.bincount(ids[ids >= 0], minlength=int(ids.max(initial=0)) + 1)


def _contradicting(rows: JobRows, ids: Ints) -> Bools:
    """Returns a mask of the pairs that contradict themselves: the operations or the sizes of the rows differ, or two
    rows are of one rank. `ids` has the number of the pair of each row, or -1."""
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
    """Returns a mask of the rows whose group has another recorded rank. For messages, the other rank of the message
    must be recorded."""
    recorded = set(job.ranks)
    several = np.array([len(recorded & set(group.ranks)) > 1 for group in job.groups] or [False])
    rows = job.rows
    messages = np.isin(rows.operation, P2P)
    return np.where(messages, np.isin(rows.peer, job.ranks), several[rows.group] if len(rows) else False)


def _numbered(ids: Ints, level: str, wrong: int, unpaired: int) -> Pairs:
    """Returns the pairs with consecutive numbers. `ids` has for each row a number that identifies its pair, or -1 for a
    row without a pair. `level`, `wrong` and `unpaired` are as in Pairs."""
    kept, inverse = np.unique(ids[ids >= 0], return_inverse=True)
    pair = np.full(len(ids), -1)
    pair[ids >= 0] = inverse
    return Pairs(pair, len(kept), level, wrong, unpaired)
