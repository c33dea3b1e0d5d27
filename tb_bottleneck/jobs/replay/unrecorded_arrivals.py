"""Arrivals of ranks that were not recorded, if recorded ranks of their group wait for them.

The start of the transfer of a collective shows when the last unrecorded rank arrived. The replay keeps the time from
the previous collective of the group to this arrival as recorded, also if a fix makes the recorded ranks faster. Without
this time, the replay of a job that waits for an unrecorded rank would be too fast. If unrecorded ranks arrive only a
little after the last recorded rank (are_small), the replay keeps this delay instead.
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
"""Smallest delay, as a share of the transfer, that counts as a late arrival and not as spread of transfers. Chosen."""
SMALL_DELAY = 0.2
"""Largest ratio (delays by unrecorded ranks / waits of the recorded ranks for each other) at which both are assumed to
have the same cause. Chosen."""


def begins_of(job: JobTable, pairs: Pairs, clocks: Clocks, wires: WireTimes) -> tuple[Floats, Floats]:
    """Returns for each pair the start of its transfer on the common clock, and how long after the last recorded arrival
    this start is, both in ns.

    Such a delay means that an unrecorded rank arrived later. The delay is 0 if all ranks of the operation were
    recorded, or if the measured delay is not clearly larger than the errors of clocks and transfer times.
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
    """Returns the graph with additional lower bounds for the start of collectives that waited for unrecorded ranks.

    A collective waited for an unrecorded rank if its value in `late` is above 0. `begins` and `late` have one value in
    ns per pair (one operation of several ranks): the start of the transfer, and its delay after the last recorded
    arrival (see begins_of). Such a collective begins at least as long after the previous collective of its group begins
    as recorded. If it is the first of its group, it does not begin before its recorded time. Returns `graph` itself if
    there is no delay, or if the new dependencies form a cycle.
    """
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


def with_small_delays(graph: JobGraph, late: Floats) -> JobGraph:
    """Returns the graph in which the transfer of each pair (one operation of several ranks) starts `late` ns after the
    last recorded rank arrives. `late` has one value per pair.

    This change assumes that unrecorded ranks are as slow as the slowest recorded rank, and that a fix makes them
    faster, too.
    """
    meeting = graph.nodes - len(late)
    arrivals = np.flatnonzero(graph.target >= meeting)
    fixed = graph.fixed.copy()
    fixed[arrivals] += late[graph.target[arrivals] - meeting]
    return replace(graph, fixed=fixed)


def are_small(job: JobTable, pairs: Pairs, clocks: Clocks, late: Floats) -> bool:
    """Returns True if the delays `late` (ns, one per pair) by unrecorded ranks are at most SMALL_DELAY of the time for
    which recorded ranks wait for each other in the same pairs.

    A rank that is slow for another reason would hardly arrive so soon after the slowest recorded rank each time.
    """
    paired = np.flatnonzero(pairs.pair >= 0)
    arrival = clocks.aligned(job.rows.rank, job.rows.start)[paired]
    first, last = np.full(pairs.count, np.inf), np.full(pairs.count, -np.inf)
    np.minimum.at(first, pairs.pair[paired], arrival)
    np.maximum.at(last, pairs.pair[paired], arrival)
    mine = late > 0
    return bool(mine.any() and late.sum() <= SMALL_DELAY * (last - first)[mine].sum())


def _before(job: JobTable, pairs: Pairs, begins: Floats) -> Ints:
    """Returns for each pair the pair of the same group that begins before it, or -1. `begins` has the start of each
    pair in ns."""
    group = np.zeros(pairs.count, np.int64)
    paired = pairs.pair >= 0
    group[pairs.pair[paired]] = job.rows.group[paired]
    order = np.lexsort((begins, group))
    same = np.diff(group[order], prepend=-1) == 0
    before = np.full(pairs.count, -1)
    before[order[same]] = order[np.flatnonzero(same) - 1]
    return before
