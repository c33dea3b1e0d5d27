"""The tables of a job for its view: per rank, and per rank and step."""

from collections.abc import Mapping

import numpy as np

from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.regime import REGIMES
from tb_bottleneck.report.rank_rows import DIGITS, rank_rows, shares_by_regime
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.schema.job_pb2 import RankTable, StepTable
from tb_bottleneck.trace.table import Floats, Ints

MAX_STEPS = 12
"""Steps of a rank in the table: a timeline of more would not show them apart."""

MAX_ROWS = 24_000
"""Rows of the table of steps, about 2 MB: of very many ranks it has fewer steps."""


def rank_table(reports: Mapping[int, pb.Report], context: JobContext | None) -> RankTable:
    """Returns the table of the ranks. `context` is None if their collectives could not be paired."""
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
    """Returns the first steps of all ranks; None if the clocks are not aligned or the ranks have no step in common."""
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
    """Returns the time in which each rank waits for others, of shape (ranks, common steps), in ns."""
    rows = context.job.rows
    waited = np.zeros((len(context.job.summaries), len(common)))
    column = np.minimum(np.searchsorted(common, rows.step), len(common) - 1)
    inside = common[column] == rows.step
    np.add.at(waited, (rows.rank[inside], column[inside]), context.waited[0][inside])
    return waited


def _rounded(values: Floats) -> list[float]:
    return [round(value, DIGITS) for value in values.tolist()]
