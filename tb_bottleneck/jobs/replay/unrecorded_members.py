"""Arrivals of ranks that were not recorded, where recorded ranks of their group wait for them.

When such a rank arrives is known from when its collective begins to transfer. It is taken as the rank's own pace: so
long after the collective of its group before, even if the recorded ranks are faster. Without this, a job that waits
for an unrecorded rank would be replayed faster than it was.
"""

from dataclasses import replace

import numpy as np

from tb_bottleneck.jobs.pairing.clocks import Clocks
from tb_bottleneck.jobs.pairing.job_table import JobTable
from tb_bottleneck.jobs.pairing.pairs import Pairs
from tb_bottleneck.jobs.replay.job_graph import JobGraph
from tb_bottleneck.jobs.replay.wire_times import WireTimes
from tb_bottleneck.trace.table import Floats, Ints

MIN_LATE = 0.25
"""Share of the transfer from which on a later begin is an arrival, and not the spread of transfers. It is chosen."""


def begins_of(job: JobTable, pairs: Pairs, clocks: Clocks, wires: WireTimes) -> tuple[Floats, Floats]:
    """Returns per pair when its transfer begins, on the common clock, and how long after the last recorded arrival.

    The second is 0 for a pair whose ranks are all recorded, and where the difference is within the errors.
    """
    rows, paired = job.rows, np.flatnonzero(pairs.pair >= 0)
    pair = pairs.pair[paired]
    begin, latest = np.full(pairs.count, np.inf), np.full(pairs.count, -np.inf)
    transfer = np.zeros(pairs.count)
    np.minimum.at(begin, pair, clocks.aligned(rows.rank, rows.end)[paired] - wires.wire[paired])
    np.maximum.at(latest, pair, clocks.aligned(rows.rank, rows.start)[paired])
    np.maximum.at(transfer, pair, wires.wire[paired])
    late = begin - latest
    known = ~wires.complete & (late > MIN_LATE * transfer + 2 * (clocks.error or 0.0))
    return begin, np.where(known, late, 0.0)


def with_unrecorded_arrivals(graph: JobGraph, job: JobTable, pairs: Pairs, begins: Floats, late: Floats) -> JobGraph:
    """Returns the graph in which collectives that wait for unrecorded ranks begin as recorded: as long after the one
    before it in the group, or at the same time if it is the first."""
    chosen = np.flatnonzero(late > 0)
    if not len(chosen):
        return graph
    meeting = graph.nodes - pairs.count
    before = _before(job, pairs, begins)[chosen]
    later, first = chosen[before >= 0], chosen[before < 0]
    base = graph.base.copy()
    base[meeting + first] = begins[first]
    source = before[before >= 0]
    none = np.full(len(later), -1)
    found = replace(
        graph,
        source=np.concatenate((graph.source, meeting + source)),
        target=np.concatenate((graph.target, meeting + later)),
        fixed=np.concatenate((graph.fixed, begins[later] - begins[source])),
        point=np.concatenate((graph.point, none)),
        row=np.concatenate((graph.row, none)),
        base=base,
    )
    return graph if len(found.levels.left) else found


def _before(job: JobTable, pairs: Pairs, begins: Floats) -> Ints:
    """Returns per pair the one before it in its group, or -1."""
    group = np.zeros(pairs.count, np.int64)
    paired = pairs.pair >= 0
    group[pairs.pair[paired]] = job.rows.group[paired]
    order = np.lexsort((begins, group))
    same = np.diff(group[order], prepend=-1) == 0
    before = np.full(pairs.count, -1)
    before[order[same]] = order[np.flatnonzero(same) - 1]
    return before
