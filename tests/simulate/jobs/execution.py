"""Runs a simulated job: when each rank does what. A collective ends one transfer after its last member arrives."""

from collections import defaultdict
from dataclasses import dataclass, field

from simulate.jobs.program import Comm, Job, Mark, Start, Wait, Work

LAUNCH_NS = 4_000
"""From the end of a kernel to the start of the next one on the same stream."""


@dataclass
class Row:
    """A communication of one rank; `ready` is when its rank issued it."""

    comm: Comm
    ready: float
    order: int
    step: int
    before: "Row | None" = None  # on the same lane
    start: float = -1.0
    end: float = -1.0


@dataclass
class Timeline:
    """What one rank did: its work, its communications, its waits, and its steps."""

    work: list[tuple[float, float, Work, int]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    waits: list[tuple[float, float, Row]] = field(default_factory=list)
    marks: list[tuple[int, float]] = field(default_factory=list)
    end: float = 0.0


def execute(job: Job) -> list[Timeline]:
    """Returns the timeline of each rank. Raises RuntimeError if the ranks wait for each other in a circle."""
    state = _State(job)
    while any(position < len(program) for position, program in zip(state.position, job.programs, strict=True)):
        moved = [state.advance(rank) for rank in range(job.size)]
        if not any(moved):
            raise RuntimeError(f"deadlock at {state.position}")
    for rank, timeline in enumerate(state.lines):
        timeline.end = state.time[rank]
    return state.lines


class _State:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.position = [0] * job.size
        self.time = [0.0] * job.size
        self.lines = [Timeline() for _ in range(job.size)]
        self._rows: dict[int, dict[int, Row]] = defaultdict(dict)
        self._lanes: dict[tuple[int, int], Row] = {}
        self._done: set[int] = set()
        self._step = [0] * job.size

    def advance(self, rank: int) -> bool:
        """Runs a rank until it has to wait for a communication that cannot end yet. Returns True if it moved."""
        program, moved = self.job.programs[rank], False
        while self.position[rank] < len(program):
            item, line = program[self.position[rank]], self.lines[rank]
            if isinstance(item, Work):
                begin = self.time[rank]
                self.time[rank] = begin + item.ns
                line.work.append((begin, self.time[rank], item, self._step[rank]))
            elif isinstance(item, Mark):
                self._step[rank] = item.number
                line.marks.append((item.number, self.time[rank]))
            elif isinstance(item, Start):
                lane = (rank, item.comm.lane)
                row = Row(item.comm, self.time[rank], len(line.rows), self._step[rank], self._lanes.get(lane))
                line.rows.append(row)
                self._rows[id(item.comm)][rank] = row
                self._lanes[lane] = row
            elif not self._waited(rank, item):
                return moved
            self.position[rank] += 1
            moved = True
        return moved

    def _waited(self, rank: int, item: Wait) -> bool:
        if not self._ended(item.comm):
            return False
        row = self._rows[id(item.comm)][rank]
        if row.end > self.time[rank]:
            self.lines[rank].waits.append((self.time[rank], row.end, row))
            self.time[rank] = row.end
        return True

    def _ended(self, comm: Comm) -> bool:
        """Ends a communication if all members arrived. A row starts when the one before it on its lane has ended."""
        if id(comm) in self._done:
            return True
        rows = self._rows[id(comm)]
        if len(rows) < len(comm.ranks) or not all(row.start >= 0 or self._arrive(row) for row in rows.values()):
            return False
        meeting = max(row.start for row in rows.values())
        for position, rank in enumerate(comm.ranks):
            rows[rank].end = meeting + comm.wire + comm.end_jitter * (position % 3)
        self._done.add(id(comm))
        return True

    def _arrive(self, row: Row) -> bool:
        before = row.before
        if before is not None and before.end < 0 and not self._ended(before.comm):
            return False
        row.start = max(row.ready, before.end + LAUNCH_NS if before is not None else 0.0)
        return True
