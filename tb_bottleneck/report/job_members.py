"""Tells which reports are about the ranks of one job.

Recordings of unrelated jobs may lie in one directory, and one rank may be recorded several times. Ranks of one job have
the same number of ranks, overlap in time, were recorded in the same steps and agree about their default process group.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import inf

from tb_bottleneck.base.text import NS_PER_S
from tb_bottleneck.schema import bottleneck_pb2 as pb

# Clocks of hosts that are synchronised at all differ by less: NTP corrects by milliseconds, and steps only above 128 ms
# (ntpd's step threshold).
MAX_CLOCK_DIFFERENCE_NS = NS_PER_S


def jobs_in(reports: Sequence[pb.Report]) -> list[list[int]]:
    """Returns the positions of the ranks of each job, in order of rank; jobs in order of run and time.

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
    """Adds each report, in order of time, to the first job that it fits."""
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
    """The ranks of one job, and what they have in common."""

    def __init__(self) -> None:
        self.positions: list[int] = []
        self._ranks: set[int] = set()
        self._group = ""
        self._times = (-inf, inf)
        self._steps = (-inf, inf)

    def fits(self, report: pb.Report) -> bool:
        """Returns True if nothing that is known contradicts that a report is about another rank of this job."""
        begin, end = _common(self._times, _times(report))
        first, last = _common(self._steps, _steps(report))
        group = report.membership.default_group
        same_group = not group or not self._group or group == self._group
        return (
            report.rank not in self._ranks and same_group and begin - end <= MAX_CLOCK_DIFFERENCE_NS and first <= last
        )

    def add(self, position: int, report: pb.Report) -> None:
        """Adds a report that fits."""
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
