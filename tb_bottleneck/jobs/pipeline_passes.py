"""The passes of a pipeline: when a rank does forward or backward work, and for which microbatch.

The schedule follows from the recording. Work that begins with a message from the previous stage, or ends with a message
to the next stage, is forward work. With messages in the other direction, it is backward work.
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
"""Smallest share of the step for a pass of a microbatch. Shorter work is not shown."""

# A message ends at most this long after the recorded begin of the work that needs it.
_NEXT_NS = 50_000


@dataclass(frozen=True)
class Span:
    """A part of the device work of a rank, from `begin` to `end` in ns since the start of its window.

    `phase` is one of PHASES. `microbatch` is the number of the forward or backward pass in its step, from 1; 0 if it is
    not known. `point` is the row of RankPoints that ends the work.
    """

    begin: float
    end: float
    phase: str
    microbatch: int
    point: int


def spans_of(context: JobContext, row: int, place: int) -> Iterator[Span]:
    """Yields the spans of device work of one rank in one step, in order of time.

    `row` is the position of the rank among the recorded ranks, `place` the position of the step among its steps.
    """
    points, summary = context.graph.points, context.job.summaries[row]
    mine = np.flatnonzero(points.rank == row)
    time, work, device = points.time[mine], points.own[mine].sum(axis=1), points.own[mine][:, Own.DEVICE]
    began = np.concatenate(([0.0], time[:-1]))[: len(time)]
    begin, end = float(summary.edges[place]), float(summary.edges[place + 1])
    shown = (2 * device >= work) & (work >= MIN_SPAN * (end - begin)) & (began >= begin)
    averages = points.resumes[mine] & _averages(context)[points.row[mine]]
    messages, block = _Messages(context, row), _Block()
    messages.arrived(begin)  # skips the messages of the step before
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
    """Returns True if the pipeline is interleaved, which means that each rank has several chunks of layers. Then, the
    first and the last stage exchange messages."""
    job, grid = context.job, context.grid
    place = dict(zip(job.ranks, grid.stage.tolist(), strict=True))
    messages = np.flatnonzero(np.isin(job.rows.operation, P2P) & (grid.stage[job.rows.rank] == 0))
    peers = np.unique(job.rows.peer[messages])
    return grid.stages > 2 and any(place.get(rank) == grid.stages - 1 for rank in peers.tolist())


def _averages(context: JobContext) -> Bools:
    """Returns a mask of the rows of the job that are collectives of gradients or parameters. The work after such a
    collective belongs to no microbatch."""
    kinds = np.isin(np.array(context.grid.kinds or ("",)), OVERLAPPED_KINDS)
    rows = context.job.rows
    return kinds[rows.group] & ~np.isin(rows.operation, P2P)


class _Block:
    """Collects the work of a rank between two messages.

    `before` is the direction of the message after which the work begins: 1 for a forward pass, -1 for a backward pass,
    0 for none. `pieces` has (begin in ns, end in ns, row of the point at the end) for each part of the work.
    """

    def __init__(self) -> None:
        self.before = 0
        self.pieces: list[tuple[float, float, int]] = []
        self._count = {FORWARD: 0, BACKWARD: 0}

    def closed(self, after: int = 0) -> Iterator[Span]:
        """Yields the spans of the collected work, and removes the work from this object. `after` is the direction of
        the message that ends the work: 1 for a forward pass, -1 for a backward pass, 0 for no message."""
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
    """The messages of the rank at position `row`. `sent` maps the rows of its sent messages to their directions: 1 for
    activations (forward pass), -1 for gradients (backward pass)."""

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
        """Returns for each message in `rows` 1 if it carries activations, -1 if it carries gradients.

        `row` is the position of the rank. In an interleaved pipeline, activations also go from the last stage to the
        first stage.
        """
        job, grid = context.job, context.grid
        place = dict(zip(job.ranks, grid.stage.tolist(), strict=True))
        own = int(grid.stage[row])
        peer = np.array([place.get(rank, -1) for rank in job.rows.peer[rows].tolist()], np.int64)
        ahead = np.where(peer >= 0, peer - own, job.rows.peer[rows] - job.ranks[row])
        wraps = (np.abs(ahead) == grid.stages - 1) & (grid.stages > 2)
        way = np.sign(ahead) * np.where(wraps, -1, 1)
        return np.where(job.rows.operation[rows] == Operation.SEND, way, -way).astype(np.int64)

    def arrived(self, time: float) -> int:
        """Returns the direction (1 or -1) of the last message received until `time` (ns since the start of the window)
        and after the `time` of the previous call; 0 if no message was received."""
        last, self._next = self._next, int(np.searchsorted(self._ends, time, side="right"))
        return int(self._ways[self._next - 1]) if self._next > last else 0
