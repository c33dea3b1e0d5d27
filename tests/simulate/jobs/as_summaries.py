"""Turns the timelines of a simulated job into rank summaries, as the package would extract them from traces."""

import numpy as np

from simulate.jobs.execution import Timeline
from simulate.jobs.program import Job
from tb_bottleneck.base.intervals import EMPTY, Spans, union
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.jobs.summary.own_time import Waits, operation_of, points_between
from tb_bottleneck.jobs.summary.rank_summary import (
    Communications,
    KernelTimes,
    Operation,
    RankFacts,
    RankSummary,
    StepWork,
)
from tb_bottleneck.trace.header import ProcessGroup

EPOCH_NS = 1_790_000_000_000_000_000
_OWN = (("device",), ("input",), ("host",), ("interruption", "collection"), ())
_REGIME = {
    "device": Regime.COMPUTE, "input": Regime.INPUT, "host": Regime.HOST, "interruption": Regime.INTERRUPTION,
    "collection": Regime.INTERRUPTION,
}  # fmt: skip


def summaries_of(job: Job, lines: list[Timeline]) -> list[RankSummary]:
    """Returns one summary per rank."""
    return [_summary(job, rank, line) for rank, line in enumerate(lines)]


def operation_on(rank: int, row) -> str:
    """Returns the name that torch gives to a communication on this rank."""
    if row.comm.operation != "p2p":
        return row.comm.operation
    return "send" if row.comm.ranks[0] == rank else "recv"


def _summary(job: Job, rank: int, line: Timeline) -> RankSummary:
    names = list(dict.fromkeys(row.comm.group for row in line.rows))
    groups = {group.name: group for group in job.groups}
    marks = [*(at for _, at in line.marks), line.end]
    begin = round(marks[0])
    edges = np.round(np.array(marks)).astype(np.int64) - begin
    rows = sorted((row for row in line.rows if row.end > row.start), key=lambda row: (round(row.start), row.order))
    place = {id(row): number for number, row in enumerate(rows)}
    communications = _communications(job, rank, rows, names, line, begin)
    waits = [(place[id(row)], round(a) - begin, round(b) - begin) for a, b, row in line.waits if round(b) > round(a)]
    waits_table = Waits(*(np.array(column, np.int64) for column in zip(*waits, strict=True))) if waits else _no_waits()
    own = [_spans(line, kinds, begin) for kinds in _OWN]
    host = job.hosts[rank]
    clock = EPOCH_NS + begin + (job.skew[host] if job.skew else 0)
    members = [(name, groups[name].description, groups[name].ranks) for name in names]
    return RankSummary(
        facts=RankFacts(rank, job.size, f"host{host}", 0, "nccl", "NVIDIA H100", clock, True, False),
        groups=tuple(ProcessGroup(*member, len(member[2])) for member in members),
        numbers=tuple(number for number, _ in line.marks),
        edges=edges,
        account=_account(line, edges, begin),
        work=_work(line),
        kernels=_kernels(line),
        communications=communications,
        points=points_between(communications, waits_table, own),
    )


def _no_waits() -> Waits:
    return Waits(*(np.zeros(0, np.int64) for _ in range(3)))


def _communications(job: Job, rank: int, rows, names, line: Timeline, begin: int) -> Communications:
    counters: dict[tuple[str, bool], int] = {}
    sequence = {}
    for row in line.rows:
        counter = (row.comm.group, row.comm.operation == "p2p")
        sequence[id(row)] = counters[counter] = counters.get(counter, -1) + 1
    values = []
    for row in rows:
        operation = operation_of(operation_on(rank, row))
        other = [member for member in row.comm.ranks if member != rank]
        parts = row.comm.splits.get(rank, ())
        skew = max(parts) * len(parts) * 1000 // sum(parts) - 1000 if parts else 0
        values.append((
            [number for number, _ in line.marks].index(row.step), row.order, names.index(row.comm.group), operation,
            sequence[id(row)] if job.sequences else -1, 0, row.comm.bytes,
            other[0] if operation in (Operation.SEND, Operation.RECV) else -1, row.comm.lane, skew,
            int(row.comm.repeated), round(row.start) - begin, round(row.end) - begin,
        ))  # fmt: skip
    columns = np.array(values, np.int64).reshape(-1, 13).T
    return Communications(*(np.ascontiguousarray(column) for column in columns))


def _spans(line: Timeline, kinds: tuple[str, ...], begin: int) -> Spans:
    chosen = [(round(a) - begin, round(b) - begin) for a, b, work, _ in line.work if work.kind in kinds]
    return union(*zip(*chosen, strict=True)) if chosen else EMPTY


def _account(line: Timeline, edges, begin: int):
    account = np.zeros((len(edges) - 1, len(REGIMES)), np.int64)
    for kind, regime in _REGIME.items():
        account[:, REGIMES.index(regime)] += _spans(line, (kind,), begin).covered(edges[:-1], edges[1:])
    account[:, REGIMES.index(Regime.COMMUNICATION)] = np.diff(edges) - account.sum(axis=1)
    return account


def _work(line: Timeline) -> StepWork:
    numbers = [number for number, _ in line.marks]
    elements, collected = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.int64)
    for begin, end, work, step in line.work:
        elements[numbers.index(step)] += work.elements
        collected[numbers.index(step)] += round(end - begin) if work.kind == "collection" else 0
    return StepWork(elements, np.zeros(len(numbers), np.int64), collected)


def _kernels(line: Timeline) -> KernelTimes:
    """Three kernels: products whose time follows the amount of work, and one of fixed size, as for weights."""
    work = [work for _, _, work, _ in line.work if work.kind == "device" and work.ns > 0]
    slow = work[0].slow if work else 1.0
    medians = [float(np.median([item.ns for item in work])), 200_000 * slow, 50_000 * slow]
    blocks = [float(np.median([item.elements for item in work])) // 1000, 128, 64]
    columns = ([11, 12, 13], [len(work)] * 3, np.round(medians), blocks)
    return KernelTimes(*(np.array(values).astype(np.int64) for values in columns))
