"""The points of all ranks in one table, with waits that were too short to be recorded.

If a rank arrives last at a collective, the collective may be done before the rank begins to wait for it. Then, the
recording of this rank shows no wait. If most members of the pair (the ranks of one operation) wait, the other members
would also wait if they were faster. Therefore, a wait with a length of 0 is added for these members. It is placed where
the other members usually wait: after the same share of the work up to the next communication.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.jobs.pairing.clocks import SYNCHRONISING
from tb_bottleneck.jobs.pairing.job_table import JobTable
from tb_bottleneck.jobs.pairing.pairs import Pairs
from tb_bottleneck.trace.table import Bools, Floats, Ints

MOST = 0.5


@dataclass(frozen=True, eq=False)
class RankPoints:
    """The points of all ranks, sorted by rank, then by time. A point is the start of a communication, or the end of a
    wait for it. Times are in ns since the start of the window of the rank.

    `rank` is the position of the rank, `row` the row of the communication in the job. `resumes` is True for the end of
    a wait. `first` is True for the first point of each rank. `added` is True for waits that were not recorded. `time`
    is the recorded time. `reached` is the time at which the rank has done its own work before the point; it is earlier
    than `time` if the rank waits there. `own` is the own time (time without waiting) since the previous point, of shape
    (points, kinds).
    """

    rank: Ints
    row: Ints
    resumes: Bools
    first: Bools
    added: Bools
    time: Floats
    reached: Floats
    own: Floats

    def __len__(self) -> int:
        return len(self.rank)


@dataclass(frozen=True, eq=False)
class _UsualWaits:
    """When the ranks of each pair usually wait for it, with one value per pair.

    The ranks wait after they have started `starts` further communications and then done the share `share` (0 to 1) of
    the work up to the next start. `share` is NaN if most ranks do not wait.
    """

    starts: Ints
    share: Floats


def points_of_job(job: JobTable, pairs: Pairs) -> RankPoints:
    """Returns the points of all ranks, including waits that were too short to be recorded."""
    usual = _usual_waits(job, pairs)
    parts = [_of_rank(job, position, pairs, usual) for position in range(len(job.summaries))]
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in RankPoints.__dataclass_fields__
    }
    return RankPoints(**columns)


def _usual_waits(job: JobTable, pairs: Pairs) -> _UsualWaits:
    """Returns when the ranks of each pair usually wait for it, as the mean over the ranks that wait."""
    synchronising = (pairs.pair >= 0) & np.isin(job.rows.operation, SYNCHRONISING)
    members = np.bincount(pairs.pair[synchronising], minlength=pairs.count)
    waits, work, after = np.zeros(pairs.count), np.zeros(pairs.count), np.zeros(pairs.count)
    for position in range(len(job.summaries)):
        row, later, share = _waits_of(job, position)
        known = synchronising[row]
        pair = pairs.pair[row[known]]
        np.add.at(waits, pair, 1)
        np.add.at(after, pair, later[known])
        np.add.at(work, pair, share[known])
    usual = (waits > 0) & (waits >= MOST * members)
    count = np.maximum(waits, 1)
    return _UsualWaits(np.rint(after / count).astype(np.int64), np.where(usual, work / count, np.nan))


def _waits_of(job: JobTable, position: int) -> tuple[Ints, Ints, Floats]:
    """Returns the rows that the rank at `position` waits for, and two arrays with one value per wait: how many further
    communications the rank starts before it waits, and how much of its work between the last start before the wait and
    the next start is done when it begins to wait (0 to 1)."""
    summary = job.summaries[position]
    points, done = summary.points, np.cumsum(summary.own.sum(axis=1))
    start, resume = np.flatnonzero(points.resumes == 0), np.flatnonzero(points.resumes == 1)
    number = np.zeros(len(summary.communications), np.int64)
    number[points.communication[start]] = np.arange(len(start))
    begin = np.searchsorted(start, resume) - 1
    end = np.append(start, len(points) - 1)[begin + 1]
    before = np.where(begin >= 0, done[start[np.maximum(begin, 0)]] if len(start) else 0.0, 0.0)
    share = (done[resume] - before) / np.maximum(done[end] - before, 1.0)
    communication = points.communication[resume]
    return job.first[position] + communication, begin - number[communication], np.clip(share, 0.0, 1.0)


def _of_rank(job: JobTable, position: int, pairs: Pairs, usual: _UsualWaits) -> RankPoints:
    """Returns the points of the rank at `position`, including waits that were too short to be recorded. `usual` says
    where other ranks wait."""
    summary = job.summaries[position]
    points, own = summary.points, summary.own
    row, resumes, time = points.communication + job.first[position], points.resumes == 1, points.time.astype(np.float64)
    begins = np.zeros(len(row), np.bool_)
    begins[:1] = True
    reached = _reached(time, resumes, own)
    found = RankPoints(
        np.full(len(row), position), row, resumes, begins, np.zeros(len(row), np.bool_), time, reached, own
    )
    return _with_missing_waits(found, pairs, usual)


def _reached(time: Floats, resumes: Bools, own: Floats) -> Floats:
    """Returns for each point of a rank when its own work before the point is done, in ns: the end of the previous wait
    plus the own time (time without waiting) since then, at most `time`. `resumes` is True for the ends of waits; `own`
    has the shape (points, kinds)."""
    done = np.cumsum(own.sum(axis=1))
    waits = np.concatenate(([-1], np.where(resumes, np.arange(len(time)), -1)))[: len(time)]
    last = np.maximum.accumulate(waits)
    since = np.where(last >= 0, done - done[np.maximum(last, 0)], done)
    return np.asarray(np.minimum(np.where(last >= 0, time[np.maximum(last, 0)], 0.0) + since, time), np.float64)


def _with_missing_waits(points: RankPoints, pairs: Pairs, usual: _UsualWaits) -> RankPoints:
    """Returns the points of one rank with waits inserted for the communications for which most ranks of the pair wait,
    but this rank does not. `usual` says where these ranks wait."""
    starts = np.flatnonzero(~points.resumes)
    pair = pairs.pair[points.row[starts]]
    missing = (pair >= 0) & ~np.isin(points.row[starts], points.row[points.resumes])
    if pairs.count:
        missing &= ~np.isnan(usual.share[np.maximum(pair, 0)])
    if not missing.any():
        return points
    number = np.flatnonzero(missing)
    pair, row = pair[number], points.row[starts[number]]
    at = starts[np.minimum(number + usual.starts[pair], len(starts) - 1)]
    share = np.where(at + 1 < len(points), usual.share[pair], 0.0)
    order = np.lexsort((share, at))
    at, share, row = at[order], share[order], row[order]
    following = np.minimum(at + 1, len(points) - 1)
    before = np.where(np.diff(at, prepend=-1) == 0, np.concatenate(([0.0], share[:-1])), 0.0)
    part = points.own[following] * (share - before)[:, None]  # several waits at one place divide the work among them
    own = points.own.copy()
    np.subtract.at(own, following, part)
    reached, place = points.reached[at] + points.own[following].sum(axis=1) * share, at + 1
    return RankPoints(
        rank=np.insert(points.rank, place, points.rank[0]),
        row=np.insert(points.row, place, row),
        resumes=np.insert(points.resumes, place, True),
        first=np.insert(points.first, place, False),
        added=np.insert(points.added, place, True),
        time=np.insert(points.time, place, np.maximum(reached, points.time[at])),
        reached=np.insert(points.reached, place, reached),
        own=np.maximum(np.insert(own, place, part, axis=0), 0.0),
    )
