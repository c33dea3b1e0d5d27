"""Numbers the collectives of each class (a process group, or an operation and a size) equally on all ranks.

Where steps are numbered, a collective is the n-th of its class in its step. A rank that lost rows has another sequence
of operations and sizes in a step than most ranks: it is aligned to theirs, and what does not match stays unknown. Where
steps are not numbered, windows may begin at different collectives. The sequences of a whole recording are then shifted
to the longest agreement; repeated steps agree at several shifts, of which the clocks choose one.
"""

from collections import Counter, defaultdict
from difflib import SequenceMatcher

import numpy as np

from tb_bottleneck.jobs.pairing.job_table import JobTable
from tb_bottleneck.jobs.summary.rank_summary import Operation
from tb_bottleneck.trace.table import Ints, Rows

UNKNOWN = -(1 << 40)
"""The step of a row that could not be numbered."""

# Share of the compared operations that must agree after a shift.
MIN_AGREEMENT = 0.95
# Fewer common operations are no evidence for a shift.
MIN_COMMON = 8
MAX_SHIFTS = 512
_Token = tuple[int, int]


def ordinals_of(job: JobTable, classes: Ints) -> tuple[Ints, Ints]:
    """Returns the step and the position of each row; step UNKNOWN for rows of class -1 and those not numbered."""
    step, ordinal = np.full(len(classes), UNKNOWN), np.zeros(len(classes), np.int64)
    for rows_of_rank in _sequences(job, classes).values():
        number = _in_steps if job.numbered else _in_recording
        number(job, rows_of_rank, step, ordinal)
    return step, ordinal


def _sequences(job: JobTable, classes: Ints) -> dict[int, dict[int, Rows]]:
    """Returns per class and rank the rows in order of issue."""
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
    operation, size = job.rows.operation[rows], job.rows.bytes[rows]
    varying = operation == Operation.ALL_TO_ALL
    return list(zip(operation.tolist(), np.where(varying, 0, size).tolist(), strict=True))


def _in_steps(job: JobTable, rows_of_rank: dict[int, Rows], step: Ints, ordinal: Ints) -> None:
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
    if sequence == usual:
        step[part], ordinal[part] = number, np.arange(len(part))
        return
    for block in SequenceMatcher(None, usual, sequence, autojunk=False).get_matching_blocks():
        rows = part[block.b : block.b + block.size]
        step[rows], ordinal[rows] = number, np.arange(block.a, block.a + block.size)


def _in_recording(job: JobTable, rows_of_rank: dict[int, Rows], step: Ints, ordinal: Ints) -> None:
    reference = max(rows_of_rank.values(), key=len)
    for rows in rows_of_rank.values():
        shift = 0 if rows is reference else _shift(job, reference, rows)
        if shift is not None:
            step[rows], ordinal[rows] = 0, np.arange(len(rows)) + shift


def _shift(job: JobTable, reference: Rows, rows: Rows) -> int | None:
    """Returns the position of the first of `rows` in the reference, or None if no shift or several agree.

    Of several shifts by whole steps, the clocks choose the one at which the ends are nearest, if that is clear.
    """
    one, other = _tokens(job, reference), _tokens(job, rows)
    good = []
    for shift in range(-min(len(other), MAX_SHIFTS), min(len(one), MAX_SHIFTS)):
        common = list(zip(one[max(shift, 0) :], other[max(-shift, 0) :], strict=False))
        if len(common) >= min(MIN_COMMON, len(one), len(other)):
            agreement = sum(a == b for a, b in common) / len(common)
            if agreement >= MIN_AGREEMENT:
                good.append(shift)
    if len(good) < 2:
        return good[0] if good else None
    ends_one, ends_other = job.rows.end[reference], job.rows.end[rows]
    apart = []
    for shift in good:
        length = min(len(one) - max(shift, 0), len(other) - max(-shift, 0))
        a, b = ends_one[max(shift, 0) :][:length], ends_other[max(-shift, 0) :][:length]
        apart.append((abs(float(np.median(a - b))), shift))
    apart.sort()
    return apart[0][1] if apart[0][0] < apart[1][0] / 4 else None
