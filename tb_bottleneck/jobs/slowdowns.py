"""How much slower a job is because of single ranks, stages, and kinds of work or communication.

The replay first gives all ranks and operations the times of their peers. Then, only one rank, stage or operation at a
time takes as long as recorded, and the others keep the times of their peers. In this way, causes that hide each other
are also found: if two ranks are slow, fixing only one of them does not make the job faster (OSDI'25, arXiv 2505.05713,
section 3: S_w and S_t; here with medians).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.own_table import lower_median
from tb_bottleneck.jobs.scenarios import Changed, scaled, unchanged
from tb_bottleneck.jobs.summary.rank_summary import Operation, Own
from tb_bottleneck.trace.table import Bools, Floats

# Number of ranks that are simulated: those whose own time exceeds that of their peers most.
MAX_RANKS = 8
# Smaller factors are noise.
MIN_SLOWDOWN = 1.01


@dataclass(frozen=True)
class Slowdown:
    """The slowdown of a job by one rank, one stage, or one kind of work or communication.

    `of` is "rank", "stage" or "operation". `name` is the number of the rank or stage, the name of the communication, or
    the name of the kind of own time (time without waiting). `factor` is (length of the job if only this rank, stage or
    operation takes as long as recorded / length of the job if everything takes as long as usual).
    """

    of: str
    name: str
    factor: float


def slowdowns_of(context: JobContext) -> list[Slowdown]:
    """Returns the slowdowns with a factor of at least MIN_SLOWDOWN, largest first."""
    table = context.own
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = np.where(table.own > 0, table.usual / table.own, 1.0)
    factor[:, :, Own.DEVICE] *= _stage_factors(context)[context.grid.stage][:, None]
    wire = _usual_wire(context)
    recorded = np.zeros(factor.shape, np.bool_)
    ideal = _length(context, factor, recorded, wire)
    found = [
        Slowdown(of, name, _length(context, factor, as_recorded, wires) / ideal)
        for of, name, as_recorded, wires in _variants(context, recorded, wire)
    ]
    found = [entry for entry in found if entry.factor >= MIN_SLOWDOWN]
    return sorted(found, key=lambda entry: (-entry.factor, entry.of, entry.name))


def _variants(context: JobContext, none: Bools, wire: Floats) -> Iterator[tuple[str, str, Bools, Floats]]:
    """Yields the variants of the job to simulate, as (`of`, `name`, mask, wire times).

    `of` and `name` are those of Slowdown. The mask of shape (ranks, steps, kinds) selects the own times (time without
    waiting) that stay as recorded; `none` is such a mask that selects none. The wire times (ns) are per row; `wire` are
    the usual ones.
    """
    excess = np.nansum(context.own.excess, axis=(1, 2))
    ranks = np.arange(len(excess))[:, None, None]
    for rank in np.argsort(-excess, kind="stable")[:MAX_RANKS].tolist():
        if excess[rank] > 0:
            yield "rank", str(context.job.ranks[rank]), none | (ranks == rank), wire
    for stage in range(context.grid.stages) if context.grid.stages > 1 else ():
        yield "stage", str(stage), none | (context.grid.stage == stage)[:, None, None], wire
    for kind in Own:
        yield "operation", kind.name.lower(), none | (np.arange(len(Own)) == kind), wire
    for operation in np.unique(context.job.rows.operation).tolist():
        chosen = context.job.rows.operation == operation
        yield "operation", Operation(operation).name.lower(), none, np.where(chosen, context.wires.wire, wire)


def _length(context: JobContext, factor: Floats, recorded: Bools, wire: Floats) -> float:
    """Returns the simulated length (ns) of the job with the wire times `wire` (ns) and with own times (time without
    waiting) multiplied by `factor`, except where the mask `recorded` is True."""
    changed: Changed = scaled(unchanged(context), context, np.where(recorded, 1.0, factor))
    return replace(changed, wire=wire).length(context)


def _stage_factors(context: JobContext) -> Floats:
    """Returns for each stage (mean of the typical device times of all stages / typical device time of this stage)."""
    device = context.own.typical[:, Own.DEVICE]
    usual = np.array([lower_median(device[context.grid.stage == stage]) for stage in range(context.grid.stages)])
    return np.asarray(np.nanmean(usual) / np.maximum(usual, 1.0), np.float64)


def _usual_wire(context: JobContext) -> Floats:
    """Returns for each row of the job its usual wire time (time of the transfer) in ns: the lower median over the rows
    with the same operation and number of bytes in groups of the same kind."""
    rows, wire = context.job.rows, context.wires.wire
    kinds = np.unique(context.grid.kinds or ("",), return_inverse=True)[1]
    _, alike = np.unique(np.stack((kinds[rows.group], rows.operation, rows.bytes)), axis=1, return_inverse=True)
    alike = alike.ravel()
    order = np.lexsort((wire, alike))
    size = np.bincount(alike)
    middle = np.cumsum(size) - size + np.maximum(size - 1, 0) // 2
    return wire[order][middle][alike] if len(rows) else wire
