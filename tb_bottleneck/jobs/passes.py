"""The passes of a pipeline: when a rank works forward or backward, and on which microbatch.

The schedule comes out of the recording: work that begins with a message from the stage before, or ends with one to the
stage behind, is forward; with the other direction, it is backward.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.group_kinds import OVERLAPPED_KINDS
from tb_bottleneck.jobs.pairing.pairs import P2P
from tb_bottleneck.jobs.summary.rank_summary import Operation, Own
from tb_bottleneck.trace.table import Bools, Ints

FORWARD, BACKWARD, BOTH, OTHER = PHASES = ("forward", "backward", "both", "other")
MIN_SPAN = 0.001
"""Share of the step. Shorter work is no pass of a microbatch."""

# A message ends within this time of the begin of the work that needs it, or before.
_NEXT_NS = 50_000


@dataclass(frozen=True)
class Span:
    """Work of a rank from `begin` to `end`, in ns since the begin of its window: the work before a point, by its row.
    `microbatch` counts the passes of a step from 1; 0 if it is not known."""

    begin: float
    end: float
    phase: str
    microbatch: int
    point: int


def spans_of(context: JobContext, row: int, place: int) -> Iterator[Span]:
    """Yields the work of a rank in one of its steps, by the positions of both."""
    points, summary = context.graph.points, context.job.summaries[row]
    mine = np.flatnonzero(points.rank == row)
    time, work, device = points.time[mine], points.own[mine].sum(axis=1), points.own[mine][:, Own.DEVICE]
    began = np.concatenate(([0.0], time[:-1]))[: len(time)]
    begin, end = float(summary.edges[place]), float(summary.edges[place + 1])
    shown = (2 * device >= work) & (work >= MIN_SPAN * (end - begin)) & (began >= begin)
    averages = points.resumes[mine] & _averages(context)[points.row[mine]]
    messages, block = _Messages(context, row), _Block()
    messages.arrived(begin)  # those of the step before
    for number, at in enumerate(mine.tolist()):
        if began[number] >= end:
            break
        if shown[number]:
            arrived = messages.arrived(began[number] + _NEXT_NS)
            if arrived:
                yield from block.closed()
                block.before = arrived
            block.pieces.append((began[number], began[number] + work[number], at))
        sent = 0 if points.resumes[at] else messages.sent.get(int(points.row[at]), 0)
        if sent or averages[number]:
            yield from block.closed(sent)
    yield from block.closed()


def is_interleaved(context: JobContext) -> bool:
    """Returns True if the first and the last stage exchange messages: each rank then has several chunks of layers."""
    job, grid = context.job, context.grid
    place = dict(zip(job.ranks, grid.stage.tolist(), strict=True))
    messages = np.flatnonzero(np.isin(job.rows.operation, P2P) & (grid.stage[job.rows.rank] == 0))
    peers = np.unique(job.rows.peer[messages])
    return grid.stages > 2 and any(place.get(rank) == grid.stages - 1 for rank in peers.tolist())


def _averages(context: JobContext) -> Bools:
    """Returns per row: True for collectives of gradients and parameters. What follows them is of no microbatch."""
    kinds = np.isin(np.array(context.grid.kinds or ("",)), OVERLAPPED_KINDS)
    rows = context.job.rows
    return kinds[rows.group] & ~np.isin(rows.operation, P2P)


class _Block:
    """The work between two messages. `before` is 1 after a message of a forward pass, -1 after one of a backward pass,
    else 0."""

    def __init__(self) -> None:
        self.before = 0
        self.pieces: list[tuple[float, float, int]] = []
        self._count = {FORWARD: 0, BACKWARD: 0}

    def closed(self, after: int = 0) -> Iterator[Span]:
        """Yields the spans of the block, which a message in the direction `after` ends, and begins the next block."""
        pieces, directions = self.pieces, {self.before, after} - {0}
        self.before, self.pieces = 0, []
        if not pieces:
            return
        phase = BOTH if len(directions) > 1 else {1: FORWARD, -1: BACKWARD}.get(next(iter(directions), 0), OTHER)
        for direction, name in ((1, FORWARD), (-1, BACKWARD)):
            self._count[name] += direction in directions
        number = self._count[BACKWARD if phase == BACKWARD else FORWARD] if phase != OTHER else 0
        for begin, end, point in pieces:
            yield Span(begin, end, phase, number, point)


class _Messages:
    """The messages of a rank: of each that it sends, the direction (1 forward, -1 backward), and those that arrive."""

    def __init__(self, context: JobContext, row: int) -> None:
        job = context.job
        rows = np.arange(job.first[row], job.first[row + 1])
        rows = rows[np.isin(job.rows.operation[rows], P2P) & (job.rows.peer[rows] >= 0)]
        directions = self._directions(context, row, rows)
        sends = job.rows.operation[rows] == Operation.SEND
        self.sent = {int(at): int(way) for at, way in zip(rows[sends], directions[sends], strict=True)}
        received = rows[~sends]
        ends = job.rows.end[received] - job.summaries[row].facts.begin_ns
        order = np.argsort(ends, kind="stable")
        self._ends, self._ways, self._next = ends[order], directions[~sends][order], 0

    @staticmethod
    def _directions(context: JobContext, row: int, rows: Ints) -> Ints:
        """Returns 1 for activations and -1 for gradients. In an interleaved pipeline, activations also go from the last
        stage to the first one."""
        job, grid = context.job, context.grid
        place = dict(zip(job.ranks, grid.stage.tolist(), strict=True))
        own = int(grid.stage[row])
        peer = np.array([place.get(rank, -1) for rank in job.rows.peer[rows].tolist()], np.int64)
        ahead = np.where(peer >= 0, peer - own, job.rows.peer[rows] - job.ranks[row])
        wraps = (np.abs(ahead) == grid.stages - 1) & (grid.stages > 2)
        way = np.sign(ahead) * np.where(wraps, -1, 1)
        return np.where(job.rows.operation[rows] == Operation.SEND, way, -way).astype(np.int64)

    def arrived(self, time: float) -> int:
        """Returns the direction of the last message that ended until then and was not asked for; 0 without one."""
        last, self._next = self._next, int(np.searchsorted(self._ends, time, side="right"))
        return int(self._ways[self._next - 1]) if self._next > last else 0
