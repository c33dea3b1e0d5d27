"""Finds the jobs among reports, and judges the ranks of one job together.

In a synchronous job all ranks take the same time per step: a slow rank does not wait in the collectives, and the other
ranks wait in the collectives for the slow rank. Therefore, the rank with the least exposed communication (with no work
in parallel) determines the step time. If this rank has clearly less exposed communication than the median rank, its
verdict is the verdict of the job.

A step takes the working time of the slowest rank plus the transfer time of the collectives. The transfer time is at
most the exposed communication of the slowest rank. Without stragglers, the next slowest rank would determine the step
time, and a step would be shorter by the difference between the waiting times of this rank and of the slowest rank.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from statistics import fmean, median

import numpy as np

from tb_bottleneck.base.deviations import RUN_TO_RUN_NOISE
from tb_bottleneck.base.regime import Regime
from tb_bottleneck.base.stragglers import slow_ranks
from tb_bottleneck.base.units import NS_PER_S, share_text
from tb_bottleneck.bottlenecks.texts import word
from tb_bottleneck.report.memory_alert import with_alert_of
from tb_bottleneck.schema import bottleneck_pb2 as pb

# Largest difference between the clocks of synchronised hosts. NTP corrects clocks by milliseconds, and sets them anew
# only from a difference of 128 ms on (ntpd's step threshold).
MAX_CLOCK_DIFFERENCE_NS = NS_PER_S


def jobs_in(reports: Sequence[pb.Report]) -> list[list[int]]:
    """Returns a list per job with the positions of its ranks, in order of rank. Jobs are in order of run and time.

    Recordings of unrelated jobs may lie in one directory, and one rank may be recorded several times. The ranks of one
    job have the same run and world size, overlap in time and in step numbers, and have the same default process group.

    Only reports with a verdict count. A job has at least two different ranks.
    """
    by_run: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for position, report in enumerate(reports):
        if _is_rank(report):
            by_run[report.run, report.world_size].append(position)
    jobs = [job for _, positions in sorted(by_run.items()) for job in _split(reports, positions)]
    return [sorted(job, key=lambda position: reports[position].rank) for job in jobs if len(job) > 1]


def _is_rank(report: pb.Report) -> bool:
    is_trace = report.evidence_source != "telemetry"
    is_ranked = report.world_size > 1 and report.HasField("rank") and report.rank < report.world_size
    return is_trace and is_ranked and report.HasField("verdict")


def _split(reports: Sequence[pb.Report], positions: Iterable[int]) -> list[list[int]]:
    """Returns the positions of reports per job. Each report, in order of time, belongs to the first job that it
    fits."""
    jobs: list[_Members] = []
    for position in sorted(positions, key=lambda position: _order(reports[position])):
        job = next((job for job in jobs if job.fits(reports[position])), None)
        if job is None:
            jobs.append(job := _Members())
        job.add(position, reports[position])
    return [job.positions for job in jobs]


def _order(report: pb.Report) -> tuple[float, int]:
    return report.membership.begin_ns, report.rank


class _Members:
    """The ranks of one job, and the process group, time and steps that they have in common."""

    def __init__(self) -> None:
        self.positions: list[int] = []
        self._ranks: set[int] = set()
        self._group = ""
        self._times = (-inf, inf)
        self._steps = (-inf, inf)

    def fits(self, report: pb.Report) -> bool:
        """Returns True if `report` may be about another rank of this job, because no known fact contradicts this."""
        begin, end = _common(self._times, _times(report))
        first, last = _common(self._steps, _steps(report))
        group = report.membership.default_group
        same_group = not group or not self._group or group == self._group
        return (
            report.rank not in self._ranks and same_group and begin - end <= MAX_CLOCK_DIFFERENCE_NS and first <= last
        )

    def add(self, position: int, report: pb.Report) -> None:
        """Adds `report`, which fits to this job. `position` is its position among all reports."""
        self.positions.append(position)
        self._ranks.add(report.rank)
        self._group = self._group or report.membership.default_group
        self._times = _common(self._times, _times(report))
        self._steps = _common(self._steps, _steps(report))


def _common(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return max(a[0], b[0]), min(a[1], b[1])


def _times(report: pb.Report) -> tuple[float, float]:
    member = report.membership
    return (member.begin_ns, member.end_ns) if report.HasField("membership") else (-inf, inf)


def _steps(report: pb.Report) -> tuple[float, float]:
    member = report.membership
    return (member.first_step, member.last_step) if member.HasField("first_step") else (-inf, inf)


# More ranks than any job has; the world size in a file is untrusted.
MAX_LISTED_RANKS = 1 << 17


def jobs_of(reports: Sequence[pb.Report]) -> list[pb.Job]:
    """Returns the jobs among `reports` (see `jobs_in`), each with its verdict, in order of run and time."""
    jobs = jobs_in(reports)
    return [job_of({reports[position].rank: reports[position] for position in members}) for members in jobs]


def job_of(ranks: Mapping[int, pb.Report]) -> pb.Job:
    """Returns the job that consists of `ranks` (reports by rank), judged by their accounts (time per regime)."""
    run, world_size = next((report.run, report.world_size) for report in ranks.values())
    waits = {rank: _share(report, Regime.COMMUNICATION) for rank, report in sorted(ranks.items())}
    typical, numbers = median(waits.values()), list(waits)
    own = 1 - np.array(list(waits.values()))
    stragglers = [(numbers[at], excess) for at, excess in slow_ranks(own)]
    slowest = stragglers[0][0] if stragglers else min(ranks, key=lambda rank: (abs(waits[rank] - typical), rank))
    missing = sorted(set(range(min(world_size, MAX_LISTED_RANKS))) - ranks.keys())
    job = pb.Job(
        run=run, ranks=sorted(ranks), world_size=world_size, missing_ranks=missing, verdict=ranks[slowest].verdict
    )
    job.verdict.ClearField("action")  # this action has the gain for the step of one rank, not for the job
    job.verdict.CopyFrom(with_alert_of(job.verdict, [report.verdict for report in ranks.values()]))
    if stragglers:
        sentence = straggler_sentence(slowest, stragglers[0][1])
        job.verdict.headline = f"{sentence} On that rank: {ranks[slowest].verdict.headline}"
    elif job.verdict.regime == Regime.COMMUNICATION:
        least = min(waits.values())
        job.verdict.headline += (
            f" The rank with the least time in collectives spends {share_text(least)} there: at most this is transfer "
            "time, the rest is waiting for other ranks."
        )
    if stragglers:
        complete = all(report.world_size == len(ranks) for report in ranks.values())
        job.speedup.CopyFrom(_speedup(waits, {rank for rank, _ in stragglers}, complete))
    job.stragglers.extend(pb.Straggler(rank=rank, behind_share=behind) for rank, behind in stragglers)
    job.account.extend(_mean_row(list(ranks.values()), position) for position in range(len(ranks[slowest].account)))
    return job


def straggler_sentence(rank: int, behind_share: float) -> str:
    """Returns the headline of a job with the straggler `rank`. This rank waits less than the median rank; the
    difference is the fraction `behind_share` (0 to 1) of a step."""
    share = f"{behind_share * 100:.0f} %"
    return f"The other ranks wait for rank {rank}, which waits {share} less of each step than the median rank."


def _speedup(waits: Mapping[int, float], stragglers: set[int], complete: bool) -> pb.Speedup:
    """Returns the gain of the job if stragglers become as fast as the median rank. `complete` is True if all ranks were
    recorded; otherwise, the gain is not known.

    The next slowest rank then determines the step time. In the worst case, only the slowest rank becomes faster, or its
    work moves to the other ranks so that all ranks take the mean time. In the best case, all ranks take the time of the
    median rank. `waits` has for each rank the fraction of the step in which it waits."""
    if not complete:
        return pb.Speedup(expected=1, low=1, high=1, basis="none", because=word("ranks_missing").substitute())
    least_wait, typical, mean = min(waits.values()), median(waits.values()), fmean(waits.values())
    second = sorted(waits.values())[1]
    others = min(wait for rank, wait in waits.items() if rank not in stragglers)
    expected, low, high = (1 / (1 - (wait - least_wait)) for wait in (min(others, typical), min(second, mean), typical))
    return pb.Speedup(
        expected=expected,
        low=max(low / (1 + RUN_TO_RUN_NOISE), 1.0),
        high=high * (1 + RUN_TO_RUN_NOISE),
        basis="ranks",
        assumes=word("ranks_assumed").substitute(),
    )


def _mean_row(reports: list[pb.Report], position: int) -> pb.AccountRow:
    rows = [report.account[position] for report in reports]
    return pb.AccountRow(
        regime=rows[0].regime,
        share=fmean(row.share for row in rows),
        ns_per_step=fmean(row.ns_per_step for row in rows),
        title=rows[0].title,
        meaning=rows[0].meaning,
    )


def _share(report: pb.Report, regime: str) -> float:
    return next(row.share for row in report.account if row.regime == regime)
