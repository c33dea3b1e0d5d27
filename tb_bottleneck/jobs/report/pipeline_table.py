"""One step of a pipeline for its diagram: when each rank works forward or backward, and on which microbatch.

The schedule comes out of the recording: work that begins with a message from the stage before, or ends with one to the
stage behind, is forward; with the other direction, it is backward.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.jobs.causes.imbalance import OVERLAPPED_KINDS
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.pairing.pairs import P2P
from tb_bottleneck.jobs.replay.critical_path import critical_work
from tb_bottleneck.jobs.summary.rank_summary import Operation, Own
from tb_bottleneck.schema.job_pb2 import PipelineTable
from tb_bottleneck.trace.table import Bools, Ints

MAX_RANKS, MAX_SPANS = 32, 8_000
"""More would not be told apart in a diagram, and would make the answer large."""

FORWARD, BACKWARD, BOTH, OTHER = PHASES = ("forward", "backward", "both", "other")
MIN_SPAN = 0.001
"""Share of the step. Shorter work is no pass of a microbatch."""

# A message ends within this time of the begin of the work that needs it, or before.
_NEXT_NS = 50_000


@dataclass(frozen=True)
class Span:
    """Work of a rank from `begin` to `end`, in ns since the begin of its window. `microbatch` counts from 1; 0 if it
    is not known."""

    begin: float
    end: float
    phase: str
    microbatch: int
    critical: bool


def pipeline_table(context: JobContext) -> PipelineTable | None:
    """Returns the step in the middle of the recording; None without a pipeline, clocks, or a step of all ranks."""
    job, graph = context.job, context.graph
    if context.grid.stages < 2 or context.clocks.because:
        return None
    numbers = [np.array(s.numbers) if job.numbered else np.arange(s.steps) for s in job.summaries]
    common = sorted(set.intersection(*(set(each.tolist()) for each in numbers)))
    if not common:
        return None
    step = common[len(common) // 2]
    complete = context.complete
    own, wire = (graph.points.own[complete.point], context.wires.wire[complete.row])
    critical = critical_work(complete.graph, context.replay, own, wire)[: len(graph.points)]
    table = PipelineTable(step=step)
    spans = [
        (job.ranks[row], context.graph.begin[row], each)
        for row in _shown(context, critical)
        for each in _spans(context, row, int(np.searchsorted(numbers[row], step)), critical)
    ][:MAX_SPANS]
    origin = min((begin + each.begin for _, begin, each in spans), default=0.0)
    for rank, begin, each in spans:
        table.rank.append(rank)
        table.phase.append(each.phase)
        table.microbatch.append(each.microbatch)
        table.begin_ns.append(round(begin + each.begin - origin))
        table.end_ns.append(round(begin + each.end - origin))
        table.critical.append(each.critical)
    return table if spans else None


def _shown(context: JobContext, critical: Bools) -> list[int]:
    """Returns the ranks of the diagram by replica and stage: first the replicas with most of the critical path."""
    stage = context.grid.stage
    replica = np.array([int((stage[:row] == stage[row]).sum()) for row in range(len(stage))])
    on_path = np.bincount(replica[context.graph.points.rank[critical]], minlength=int(replica.max()) + 1)
    chosen = np.argsort(-on_path, kind="stable")[: max(MAX_RANKS // context.grid.stages, 1)]
    rows = [row for row in range(len(stage)) if replica[row] in chosen]
    return sorted(rows, key=lambda row: (replica[row], stage[row]))[:MAX_RANKS]


def _spans(context: JobContext, row: int, place: int, critical: Bools) -> Iterator[Span]:
    """Yields the work of a rank in one of its steps."""
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
            block.pieces.append((began[number], began[number] + work[number], bool(critical[at])))
        sent = 0 if points.resumes[at] else messages.sent.get(int(points.row[at]), 0)
        if sent or averages[number]:
            yield from block.closed(sent)
    yield from block.closed()


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
        self.pieces: list[tuple[float, float, bool]] = []
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
        for begin, end, critical in pieces:
            yield Span(begin, end, phase, number, critical)


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
