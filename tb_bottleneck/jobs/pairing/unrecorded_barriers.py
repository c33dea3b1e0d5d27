"""Finds waits of all ranks for each other that no recorded communication explains.

Ranks of different stages finish a step at different times, but may begin the next collectives of their groups together.
In this case, the ranks waited for each other before these collectives, in an operation that is not in the recording,
such as a collective in a CUDA graph, a barrier over a store, or a norm of all gradients. The recording shows this wait
as own time (time without waiting), for example as kernels that take as long as the wait. The shortest of these own
times over the ranks is taken as the work. The remaining time of each rank becomes the wait in a barrier that all ranks
leave together.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from tb_bottleneck.jobs.pairing.clocks import SYNCHRONISING, Clocks
from tb_bottleneck.jobs.pairing.job_table import JobTable, job_table
from tb_bottleneck.jobs.replay.waits import RankPoints
from tb_bottleneck.jobs.summary.rank_summary import Communications, Operation, Own, Points, RankSummary
from tb_bottleneck.trace.header import ProcessGroup
from tb_bottleneck.trace.table import Bools, Floats, Ints

# Smallest difference between the times at which the first and the last rank finish their work, as a share of the step.
# A smaller difference cannot cost more than the noise of steps.
MIN_APART = 0.03
# The ranks continue together if their starts of the next collective differ by at most this share of the difference
# above. Chosen.
TOGETHER = 0.1
# The own times of the ranks since the collective before must differ by at least this share of the same difference.
# Ranks with equal work that begin together end together without waiting, as in a pipeline without bubbles. Chosen.
MIN_UNEQUAL = 0.5
# A barrier must precede at least this share of the collectives of a kind, and at least this number of them, because one
# coincidence is no barrier. Both are chosen.
MIN_SHARE, MIN_COUNT = 0.8, 2
# Largest number of ranks that are examined first. If they show no barrier, the other ranks are not examined, because a
# barrier concerns all ranks.
MAX_TRIED = 64
NAME = "not recorded"
"""Name of the group of barriers that were not recorded."""

_KINDS = [Own.DEVICE, Own.HOST, Own.OTHER]
"""Kinds of own time (time without waiting) that may hide a wait. Time of the other kinds is known to be spent on
something else: waiting for data, or interruptions such as checkpoints."""


@dataclass(frozen=True, eq=False)
class Arrivals:
    """The starts of synchronising collectives of one rank, with one value per start. Times are in ns on the common
    clock.

    `point` is the row of the start in the rank's table of points. `kind` is the number of the (group description,
    operation) of the collective, equal on all ranks. `time` is the start, `free` the end of the last wait before it,
    and `issued` the time of the point before it. `worked` is the own time (time without waiting) from the start of the
    window to `time`.
    """

    point: Ints
    kind: Ints
    free: Floats
    issued: Floats
    time: Floats
    worked: Floats


def with_barriers(job: JobTable, clocks: Clocks, points: RankPoints) -> JobTable:
    """Returns the job with a barrier for each wait of all ranks for each other that was not recorded; the same object
    if there is no such wait. `points` are the points of the job, including waits that were too short to be recorded."""
    some = range(0, len(job.summaries), -(-len(job.summaries) // MAX_TRIED))
    if _places(job, _arrivals(job, clocks, points, some)) is None:
        return job
    arrivals = _arrivals(job, clocks, points, range(len(job.summaries)))
    places = _places(job, arrivals)
    if places is None:
        return job
    free, issued, left = (_values(arrivals, places, name) for name in ("free", "issued", "time"))
    release = left.min(axis=0)
    arrival = np.minimum(np.maximum(issued, free + (left - free).min(axis=0)), release - 1)
    summaries = []
    for row, summary in enumerate(job.summaries):
        begin, at = _window_begin(job, clocks, row), arrivals[row].point[places[row]]
        summaries.append(_with_barriers(summary, at, arrival[row] - begin, release - begin, job.ranks))
    return job_table(summaries)


def _places(job: JobTable, arrivals: list[Arrivals]) -> Ints | None:
    """Returns the collectives before which all ranks waited for each other, as positions in the arrivals of each rank.

    `arrivals` has one entry per rank. The result has the shape (ranks, waits). Returns None if there are no such waits.
    """
    if len(arrivals) < 2:
        return None
    reference = min(arrivals, key=lambda each: len(each.point))
    step = float(np.median(np.concatenate([np.diff(summary.edges) for summary in job.summaries])))
    found: list[Ints] = []
    for kind in np.unique(reference.kind).tolist():
        chosen = _of_kind(arrivals, reference, kind)
        if chosen is None:
            continue
        free, left = (_values(arrivals, chosen, name) for name in ("free", "time"))
        apart, together = free.max(axis=0) - free.min(axis=0), left.max(axis=0) - left.min(axis=0)
        work = np.diff(_values(arrivals, chosen, "worked"), axis=1, prepend=0.0)
        unequal = work.max(axis=0) - work.min(axis=0) >= MIN_UNEQUAL * apart
        waited = (apart >= MIN_APART * step) & (together <= TOGETHER * apart) & unequal
        if waited.sum() >= max(MIN_COUNT, MIN_SHARE * len(waited)):
            found.append(chosen[:, waited])
    return np.concatenate(found, axis=1) if found else None


def _arrivals(job: JobTable, clocks: Clocks, points: RankPoints, ranks: Iterable[int]) -> list[Arrivals]:
    """Returns for each of `ranks` (positions among the recorded ranks) its starts of synchronising collectives."""
    kinds = {name: number for number, name in enumerate(sorted({group.description for group in job.groups}))}
    described = np.array([kinds[group.description] for group in job.groups] or [0], np.int64)
    bounds = np.searchsorted(points.rank, np.arange(len(job.summaries) + 1))
    return [_of_rank(job, clocks, row, described, points, slice(bounds[row], bounds[row + 1])) for row in ranks]


def _of_rank(job: JobTable, clocks: Clocks, row: int, described: Ints, points: RankPoints, mine: slice) -> Arrivals:
    time, own, recorded = points.time[mine], job.summaries[row].own, ~points.added[mine]
    last = np.maximum.accumulate(np.where(points.resumes[mine], np.arange(len(time)), -1))
    free = np.where(last >= 0, time[np.maximum(last, 0)], 0.0)
    rows, resumes = points.row[mine][recorded], points.resumes[mine][recorded]
    hides = 2 * own[:, _KINDS].sum(axis=1) >= np.maximum(own.sum(axis=1), 1.0)
    at = np.flatnonzero(~resumes & hides & np.isin(job.rows.operation[rows], SYNCHRONISING))
    at = at[at > 0]
    offset = _window_begin(job, clocks, row)
    return Arrivals(
        point=at,
        kind=described[job.rows.group[rows[at]]] * len(Operation) + job.rows.operation[rows[at]],
        free=free[recorded][at] + offset,
        issued=time[recorded][at - 1] + offset,
        time=time[recorded][at] + offset,
        worked=np.cumsum(own.sum(axis=1))[at],
    )


def _window_begin(job: JobTable, clocks: Clocks, row: int) -> float:
    """Returns the start of a rank's window on the common clock, in ns."""
    return float(clocks.aligned(np.array([row]), np.array([job.summaries[row].facts.begin_ns]))[0])


def _of_kind(arrivals: list[Arrivals], reference: Arrivals, kind: int) -> Ints | None:
    """Returns for each rank its arrivals of `kind` that are nearest in time to those of `reference`, as positions.

    The result has the shape (ranks, arrivals of `reference`). An arrival of `reference` is left out if it shares its
    nearest arrival on some rank with another one. Returns None if nothing is left.
    """
    wanted = reference.time[reference.kind == kind]
    found, unique = [], np.ones(len(wanted), np.bool_)
    for each in arrivals:
        mine = np.flatnonzero(each.kind == kind)
        if not len(mine):
            return None
        times = each.time[mine]
        after = np.minimum(np.searchsorted(times, wanted), len(times) - 1)
        before = np.maximum(after - 1, 0)
        nearest = np.where(np.abs(times[before] - wanted) < np.abs(times[after] - wanted), before, after)
        unique &= np.bincount(nearest, minlength=len(times))[nearest] == 1
        found.append(mine[nearest])
    return np.stack(found)[:, unique] if unique.any() else None


def _values(arrivals: list[Arrivals], places: Ints, name: str) -> Floats:
    """Returns the field `name` of the arrivals at the positions `places`. `places` and the result have the shape
    (ranks, waits)."""
    return np.stack([getattr(each, name)[place] for each, place in zip(arrivals, places, strict=True)])


def _with_barriers(
    summary: RankSummary, at: Ints, arrival: Floats, release: Floats, ranks: tuple[int, ...]
) -> RankSummary:
    """Returns the summary of a rank with one more barrier before each of its points `at`.

    `arrival` and `release` have one value per barrier: when the rank arrives and when it continues, in ns since the
    start of its window. `ranks` are the numbers of all recorded ranks, which are the group of the barriers.
    """
    order = np.argsort(at, kind="stable")
    at, old = at[order], summary.communications
    start = np.round(arrival[order]).astype(np.int64)
    end = np.maximum(np.round(release[order]).astype(np.int64), start + 1)
    count = len(at)
    lane = np.full(count, int(old.lane.max(initial=0)) + 1)
    fresh = {
        "step": old.step[summary.points.communication[at]], "order": len(old) + np.arange(count),
        "group": np.full(count, len(summary.groups)), "operation": np.full(count, int(Operation.BARRIER)),
        "sequence": order, "key": order + 1, "peer": np.full(count, -1), "lane": lane, "start": start, "end": end,
    }  # fmt: skip
    columns = {
        name: np.concatenate((getattr(old, name), fresh.get(name, np.zeros(count, np.int64))))
        for name in Communications.__dataclass_fields__
    }
    by_start = np.argsort(columns["start"], kind="stable")
    place = np.empty(len(by_start), np.int64)
    place[by_start] = np.arange(len(by_start))
    return replace(
        summary,
        groups=(*summary.groups, ProcessGroup(NAME, NAME, ranks, len(ranks))),
        communications=Communications(*(np.ascontiguousarray(columns[name][by_start]) for name in columns)),
        points=_split(summary.points, place, at, place[len(old) :], start, end),
    )


def _split(points: Points, place: Ints, at: Ints, rows: Ints, start: Ints, end: Ints) -> Points:
    """Returns the points with two more points for each barrier: its start, and the end of the wait for it.

    The two points are inserted before each of the points `at`. The own time (time without waiting) before a point `at`
    is divided between the time before `start` and the time after `end` of the barrier, both in ns since the start of
    the window. `rows` has the row of each barrier in the new table of communications, `place` the new row of each old
    communication.
    """
    columns = {name: getattr(points, name) for name in Points.__dataclass_fields__}
    columns["communication"] = place[points.communication]
    before, length = points.time[at - 1], np.maximum(points.time[at] - points.time[at - 1], 1)
    for name in ("device", "input", "host", "interruption", "other"):
        first, last = (
            np.round(columns[name][at] * np.clip(share, 0.0, 1.0)).astype(np.int64)
            for share in ((start - before) / length, (points.time[at] - end) / length)
        )
        rest = columns[name].copy()
        rest[at] = last
        columns[name] = _inserted(rest, at, first, np.zeros(len(at), np.int64))
    columns["time"] = _inserted(columns["time"], at, start, end)
    columns["communication"] = _inserted(columns["communication"], at, rows, rows)
    columns["resumes"] = _inserted(columns["resumes"], at, np.zeros(len(at), np.int64), np.ones(len(at), np.int64))
    return Points(**columns)


def _inserted(values: Ints, at: Ints, first: Ints, second: Ints) -> Ints:
    """Returns `values` with an element of `first` and one of `second` inserted before each position in `at`."""
    return np.insert(values, np.repeat(at, 2), np.stack((first, second), axis=1).ravel())


def is_barrier(job: JobTable) -> Bools:
    """Returns a mask of the rows of the job: True for barriers that were not recorded but added by with_barriers."""
    named = np.array([group.name == NAME for group in job.groups] or [False])
    return named[job.rows.group] if len(job.rows) else np.zeros(0, np.bool_)
