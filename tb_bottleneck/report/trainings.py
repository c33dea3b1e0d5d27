"""Determines which recordings are about one training. A list shows the recordings of a training as one entry with one
verdict.

Recordings belong together if they lie in the monitor's directories of one training, if they are the trace and the
telemetry of one process (same_process.py), or if they are ranks of one job (jobs.py). Other recordings are not grouped,
because traces in one directory may be of unrelated trainings.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tb_bottleneck.report.jobs import jobs_in
from tb_bottleneck.report.rank_rows import named_rank
from tb_bottleneck.report.same_process import Located, launches_of, logdir_of, pairs_of
from tb_bottleneck.schema import bottleneck_pb2 as pb

Judged = Mapping[tuple[int, ...], int]
"""Jobs that have a report of the whole job: maps the positions of the ranks to the position of the rank that explains
the verdict."""


@dataclass(frozen=True)
class Training:
    """The recordings of one training, as positions in a list of reports.

    The first member is the recording with the verdict of the training; the others follow in ascending order. `ranks`
    are the members that are the ranks of the (latest) job, in order of rank; empty without a job.
    """

    members: tuple[int, ...]
    ranks: tuple[int, ...] = ()

    @property
    def first(self) -> int:
        """The position of the recording that has the verdict of the training."""
        return self.members[0]


def trainings_of(located: Located, judged: Judged | None = None) -> list[Training]:
    """Returns the trainings of these reports, in the order of their first reports.

    Each report comes with its directory. The report of a recording that has not been analysed yet has no health. The
    reports of one process must have been joined (cross_check.join), so that they state which evidence source is
    trusted. `judged` has the jobs whose ranks are known; other jobs are found from the reports.
    """
    groups = _Groups(len(located))
    for positions in _together(located):
        groups.unite(positions)
    jobs = _jobs(located, judged or {})
    for job in jobs:
        groups.unite(job)
    latest = {groups.of(job[0]): job for job in jobs}  # jobs of one run are in order of time
    return [
        Training(_first(members, latest.get(group, ()), located, judged or {}), latest.get(group, ()))
        for group, members in groups.all().items()
    ]


def judged_jobs(jobs: Mapping[tuple[int, ...], pb.Job], reports: Sequence[pb.Report]) -> Judged:
    """Returns the jobs with the position of the rank that explains the verdict: the rank that it names, or else the
    lowest one. `jobs` maps the positions of the ranks in `reports` to the job."""
    named = {ranks: named_rank(job) for ranks, job in jobs.items()}
    return {
        ranks: next((position for position in ranks if reports[position].rank == rank), ranks[0])
        for ranks, rank in named.items()
    }


def _jobs(located: Located, judged: Judged) -> list[tuple[int, ...]]:
    """Returns the positions in `located` of the ranks of each job, in order of rank. The jobs in `judged` are known;
    others are found from the reports."""
    known = {position for job in judged for position in job}
    rest = [position for position in range(len(located)) if position not in known]
    found = jobs_in([located[position][1] for position in rest])
    return [*judged, *(tuple(rest[at] for at in job) for job in found)]


def _together(located: Located) -> Iterable[Sequence[int]]:
    """Yields groups of positions in `located`. Each group has recordings of one process, or of one launch of the
    monitor."""
    launches = launches_of(directory for directory, _ in located)
    by_launch: dict[str, list[int]] = {}
    for position, (directory, _) in enumerate(located):
        if logdir_of(directory):
            by_launch.setdefault(launches[directory], []).append(position)
    yield from by_launch.values()
    # In the second round, traces without a verdict are included, too. They are paired only if no other trace fits to
    # the telemetry.
    hopeful = [at for at, (_, report) in enumerate(located) if report.HasField("verdict") or not report.health.status]
    for positions in (hopeful, range(len(located))):
        for pair in pairs_of([located[position] for position in positions]):
            yield [positions[at] for at in pair]


def _first(members: list[int], ranks: tuple[int, ...], located: Located, judged: Judged) -> tuple[int, ...]:
    """Returns `members`, with the one that has the verdict moved to the front.

    For a job that is not judged, the lowest rank is first: the accounts (time per regime) alone do not show for which
    rank the others wait."""
    first = judged.get(ranks, ranks[0]) if ranks else _trusted(members, located)
    return (first, *(member for member in members if member != first))


def _trusted(members: list[int], located: Located) -> int:
    """Returns the member whose evidence source (trace or telemetry) is trusted. Of several traces, the last one counts,
    as in `join`."""
    reports = {member: located[member][1] for member in members}
    judged = [member for member in members if reports[member].HasField("verdict")]
    traces = [member for member in judged if reports[member].evidence_source != "telemetry"]
    if not traces:
        telemetry = judged[:1]
        return (telemetry or members)[0]
    last = traces[-1]
    source = next((other.witness for other in reports[last].others if other.trusted), "trace")
    if source == "trace":
        return last
    return next(member for member in judged if reports[member].evidence_source == "telemetry")


class _Groups:
    """Sets of positions that are merged step by step (union-find)."""

    def __init__(self, count: int) -> None:
        self._parent = list(range(count))

    def of(self, position: int) -> int:
        """Returns the lowest position of the set that contains `position`."""
        while self._parent[position] != position:
            self._parent[position] = position = self._parent[self._parent[position]]
        return position

    def unite(self, positions: Sequence[int]) -> None:
        """Merges the sets that contain `positions` into one set."""
        roots = {self.of(position) for position in positions}
        for root in roots:
            self._parent[root] = min(roots)

    def all(self) -> dict[int, list[int]]:
        """Returns a dict: lowest position of a set -> all its positions in order."""
        sets: dict[int, list[int]] = {}
        for position in range(len(self._parent)):
            sets.setdefault(self.of(position), []).append(position)
        return sets
