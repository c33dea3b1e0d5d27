"""The process groups of a job with their costs and bandwidths."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.pairing.pairs import P2P
from tb_bottleneck.jobs.summary.rank_summary import Operation
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trace.table import Floats, Ints

MAX_RANKS = 64
# Smaller messages are limited by latency (nccl-tests: curves flatten from here).
LARGE_MESSAGE_BYTES = 4 << 20


@dataclass(frozen=True, eq=False)
class _Costs:
    """Of the rows of a job: kind of group, size of the group, waited and transferred share of the step."""

    wait: Floats
    wire: Floats
    total: float

    def share(self, times: Floats, rows: Ints) -> float:
        """Returns the share of the step that these rows take. Those of concurrent streams overlap, up to the whole."""
        return min(float(times[rows].sum()) / self.total, 1.0)


def group_rows(context: JobContext) -> list[pb.Group]:
    """Returns one entry per kind and size of process groups, the costliest first."""
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
    """Returns the median bus bandwidth of the large messages in GB/s; 0 if there is none with a pair."""
    table = context.job.rows
    rows = rows[(table.bytes[rows] >= LARGE_MESSAGE_BYTES) & (context.pairs.pair[rows] >= 0)]
    wire = context.wires.wire[rows]
    if not len(rows) or (wire <= 0).any():
        return 0.0
    factor = bus_factor(operation, 2 if operation in P2P else size)
    return float(np.median(table.bytes[rows] / wire)) * factor


def bus_factor(operation: Operation, size: int) -> float:
    """Returns bus bandwidth / algorithm bandwidth for n ranks, as nccl-tests defines it (doc/PERFORMANCE.md)."""
    if operation is Operation.ALL_REDUCE:
        return 2 * (size - 1) / max(size, 1)
    if operation in (Operation.ALL_GATHER, Operation.REDUCE_SCATTER, Operation.ALL_TO_ALL):
        return (size - 1) / max(size, 1)
    return 1.0
