"""The tables of a job for its view: per rank, per rank and step, and per kind and size of process groups."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.pairing.pairs import P2P
from tb_bottleneck.jobs.summary.rank_summary import Operation
from tb_bottleneck.report.rank_rows import DIGITS, rank_rows, shares_by_regime
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.schema.job_pb2 import RankTable, StepTable
from tb_bottleneck.trace.table import Floats, Ints

MAX_STEPS = 12
"""Largest number of steps of a rank in the table. In a timeline, more steps could not be distinguished."""

MAX_ROWS = 24_000
"""Largest number of rows of the table of steps, about 2 MB. With very many ranks, the table has fewer steps."""


def rank_table(reports: Mapping[int, pb.Report], context: JobContext | None) -> RankTable:
    """Returns the table with one row per rank: step time and account (time per regime). If the job could be analysed,
    the table also has the host, the stage, and the shares of time in which the rank waits, transfers data, or exceeds
    the own time (time without waiting) of its peers.

    `reports` maps rank numbers to reports. `context` is None if the analysis of the job is not trusted.
    """
    if context is None:
        return rank_rows(reports)
    ranks = context.job.ranks
    table = rank_rows({rank: reports[rank] for rank in ranks})
    steps = np.array([summary.steps for summary in context.job.summaries])
    for position, summary in enumerate(context.job.summaries):
        table.step_ns[position] = table.step_ns[position] or float(summary.edges[-1]) / summary.steps
    if (context.hosts >= 0).all():
        table.host.extend((context.hosts + 1).tolist())
    if context.grid.stages > 1:
        table.stage.extend(context.grid.stage.tolist())
    recorded = np.array([float(summary.edges[-1]) for summary in context.job.summaries])
    whole = np.maximum(steps * context.step_ns, recorded)  # a rank with longer steps than the job cannot lose more
    for column, rows in ((table.wait_share, context.waited[0]), (table.wire_share, context.waited[1])):
        total = np.bincount(context.job.rows.rank, weights=rows, minlength=len(ranks))
        column.extend(_rounded(np.minimum(total / whole, 1.0)))  # communications of several groups overlap
    excess = np.nansum(context.own.excess, axis=(1, 2))
    table.excess_share.extend(_rounded(np.maximum(excess, 0.0) / whole))
    return table


def step_table(context: JobContext) -> StepTable | None:
    """Returns the table with one row per rank and step: begin, end, account (time per regime) and share of waiting.

    The table has the first steps that all ranks recorded: at most MAX_STEPS, and at least one even if it then has more
    than MAX_ROWS rows. Returns None if the clocks of the ranks are not aligned, or if the ranks have no step in common.
    """
    job, clocks, hosts = context.job, context.clocks, context.hosts
    one_clock = hosts[0] >= 0 and bool((hosts == hosts[0]).all())
    if clocks.error is None and not one_clock:
        return None
    numbers = [np.array(s.numbers) if job.numbered else np.arange(s.steps) for s in job.summaries]
    common = numbers[0]
    for mine in numbers[1:]:
        common = np.intersect1d(common, mine)
    common = common[: max(min(MAX_STEPS, MAX_ROWS // len(numbers)), 1)]
    if not len(common):
        return None
    begins, ends, shares, waits = [], [], [], []
    waited = _waited_by_step(context, common)
    for position, (summary, mine) in enumerate(zip(job.summaries, numbers, strict=True)):
        at = np.searchsorted(mine, common)
        edges = clocks.aligned(np.full(len(summary.edges), position), summary.edges + summary.facts.begin_ns)
        begins.append(edges[at])
        ends.append(edges[at + 1])
        lengths = np.diff(summary.edges)[at]
        shares.append(summary.account[at] / lengths[:, None])
        waits.append(waited[position] / lengths)
    begin, end = np.concatenate(begins), np.concatenate(ends)
    return StepTable(
        count=len(common),
        begin_ns=np.round(begin - begin.min()).tolist(),
        end_ns=np.round(end - begin.min()).tolist(),
        account=shares_by_regime(np.concatenate(shares).reshape(-1, len(REGIMES)).T.tolist()),
        wait_share=_rounded(np.minimum(np.concatenate(waits), 1.0)),
    )


def _waited_by_step(context: JobContext, common: Ints) -> Floats:
    """Returns the time in which each rank waits for others in each step of `common`, in ns, of shape (ranks, steps).

    `common` are the sorted numbers of the steps.
    """
    rows = context.job.rows
    waited = np.zeros((len(context.job.summaries), len(common)))
    column = np.minimum(np.searchsorted(common, rows.step), len(common) - 1)
    inside = common[column] == rows.step
    np.add.at(waited, (rows.rank[inside], column[inside]), context.waited[0][inside])
    return waited


def _rounded(values: Floats) -> list[float]:
    return [round(value, DIGITS) for value in values.tolist()]


MAX_RANKS = 64
# Communications with fewer bytes are limited by latency (in nccl-tests, the curves of bandwidth flatten from this size
# on).
LARGE_MESSAGE_BYTES = 4 << 20


@dataclass(frozen=True, eq=False)
class _Costs:
    """Exposed times (with no work in parallel) of the rows of a job in ns: `wait` for other ranks, and `wire` for the
    transfer. `total` is the sum of all step times of all ranks in ns."""

    wait: Floats
    wire: Floats
    total: float

    def share(self, times: Floats, rows: Ints) -> float:
        """Returns the share of the step that the times of `rows` take. `times` is `wait` or `wire`. The share is
        limited to 1, because rows of several streams may overlap."""
        return min(float(times[rows].sum()) / self.total, 1.0)


def group_rows(context: JobContext) -> list[pb.Group]:
    """Returns one entry for each kind and size of process groups, with the shares of the step that their communications
    take, and their bandwidths; costliest first."""
    job = context.job
    if not len(job.rows):
        return []
    wait, wire = context.waited
    costs = _Costs(wait, wire, context.step_ns * context.steps * len(job.summaries))
    sizes = [group.size or len(group.ranks) or job.world_size for group in job.groups]
    kinds = list(zip(context.grid.kinds, sizes, strict=True))
    entries = []
    for kind, size in sorted(set(kinds)):
        members = [row for row, key in enumerate(kinds) if key == (kind, size)]
        rows = np.flatnonzero(np.isin(job.rows.group, members))
        if len(rows):
            entries.append(_entry(context, kind, size, members, rows, costs))
    return sorted(entries, key=lambda entry: (-(entry.wait_share + entry.wire_share), entry.kind, entry.name))


def _entry(context: JobContext, kind: str, size: int, members: list[int], rows: Ints, costs: _Costs) -> pb.Group:
    """Returns the entry for the process groups `members` (rows of the job's groups) of one kind and size. `rows` are
    their communications, `costs` the exposed times of all communications."""
    first = context.job.groups[members[0]]
    transfers = sorted(
        _transfers(context, size, rows, costs), key=lambda item: (-(item.wait_share + item.wire_share), item.operation)
    )
    return pb.Group(
        name=first.description or first.name,
        kind=kind,
        ranks=first.ranks[:MAX_RANKS],
        count=len(members),
        wait_share=costs.share(costs.wait, rows),
        wire_share=costs.share(costs.wire, rows),
        bus_gbps=max((transfer.bus_gbps for transfer in transfers), default=0.0),
        transfers=transfers,
    )


def _transfers(context: JobContext, size: int, rows: Ints, costs: _Costs) -> Iterator[pb.Transfer]:
    """Yields an entry for each type of operation in `rows`, which are communications of groups with `size` ranks.
    `costs` has the exposed times of all communications."""
    table = context.job.rows
    ranks = max(len(np.unique(table.rank[rows])), 1)
    for number in np.unique(table.operation[rows]).tolist():
        mine = rows[table.operation[rows] == number]
        sized = mine[table.bytes[mine] > 0]
        yield pb.Transfer(
            operation=Operation(number).name.lower(),
            calls=len(mine) / ranks / context.steps,
            bytes=float(np.median(table.bytes[sized])) if len(sized) else 0.0,
            wait_share=costs.share(costs.wait, mine),
            wire_share=costs.share(costs.wire, mine),
            bus_gbps=_bus_gbps(context, Operation(number), size, sized),
        )


def _bus_gbps(context: JobContext, operation: Operation, size: int, rows: Ints) -> float:
    """Returns the median bus bandwidth (as nccl-tests defines it) in GB/s of the communications in `rows` that have a
    pair and at least LARGE_MESSAGE_BYTES; 0 if it is not known. `size` is the number of ranks of a group."""
    table = context.job.rows
    rows = rows[(table.bytes[rows] >= LARGE_MESSAGE_BYTES) & (context.pairs.pair[rows] >= 0)]
    wire = context.wires.wire[rows]
    if not len(rows) or (wire <= 0).any():
        return 0.0
    factor = bus_factor(operation, 2 if operation in P2P else size)
    return float(np.median(table.bytes[rows] / wire)) * factor


def bus_factor(operation: Operation, size: int) -> float:
    """Returns (bus bandwidth / algorithm bandwidth) of an operation of `size` ranks, as nccl-tests defines them
    (doc/PERFORMANCE.md). The algorithm bandwidth is bytes / time; the bus bandwidth can be compared with the link's."""
    if operation is Operation.ALL_REDUCE:
        return 2 * (size - 1) / max(size, 1)
    if operation in (Operation.ALL_GATHER, Operation.REDUCE_SCATTER, Operation.ALL_TO_ALL):
        return (size - 1) / max(size, 1)
    return 1.0
