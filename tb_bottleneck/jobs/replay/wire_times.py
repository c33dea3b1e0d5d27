"""Separates waiting from transfer: the rank that arrives last does not wait, so the shortest time of a pair is wire.

If members of a group were not recorded, all recorded ones may have waited. The wire time is then at most what the same
operation of this group took elsewhere, in its fastest tenth.
"""

from dataclasses import dataclass

import numpy as np

from tb_bottleneck.jobs.pairing.job_table import JobTable
from tb_bottleneck.jobs.pairing.pairs import P2P, Pairs
from tb_bottleneck.trace.table import Bools, Floats, Ints

_FAST_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class WireTimes:
    """Per row the transfer in ns (`wire`) and what the row took longer (`wait`); a row without a pair has no wait.

    Per pair the row that arrived last (`last`), and whether all members were recorded (`complete`).
    """

    wire: Floats
    wait: Floats
    last: Ints
    complete: Bools


def wire_times_of(job: JobTable, pairs: Pairs) -> WireTimes:
    """Returns the wire time and the wait of each row."""
    rows = job.rows
    duration = (rows.end - rows.start).astype(np.float64)
    paired = np.flatnonzero(pairs.pair >= 0)
    shortest, size = np.full(pairs.count, np.inf), np.bincount(pairs.pair[paired], minlength=pairs.count)
    np.minimum.at(shortest, pairs.pair[paired], duration[paired])
    order = paired[np.lexsort((duration[paired], pairs.pair[paired]))]
    _, first = np.unique(pairs.pair[order], return_index=True)
    last = order[first] if len(order) else order
    complete = size >= _sizes(job)[last] if len(last) else np.zeros(0, np.bool_)
    shortest = np.where(complete, shortest, np.minimum(shortest, _fast(job, last, shortest)))
    wire = duration.copy()
    wire[paired] = shortest[pairs.pair[paired]]
    return WireTimes(wire, np.maximum(duration - wire, 0.0), last, complete)


def _sizes(job: JobTable) -> Ints:
    """Returns per row how many ranks take part."""
    groups = [group.size or len(group.ranks) or job.world_size for group in job.groups]
    size = np.array(groups or [0], np.int64)[job.rows.group] if len(job.rows) else np.zeros(0, np.int64)
    return np.where(np.isin(job.rows.operation, P2P), 2, size)


def _fast(job: JobTable, last: Ints, shortest: Floats) -> Floats:
    """Returns per pair the fastest tenth of the times of this operation and size in its group."""
    rows = job.rows
    keys = np.stack((rows.group[last], rows.operation[last], rows.bytes[last]))
    _, kind = np.unique(keys, axis=1, return_inverse=True)
    kind = kind.ravel()
    fast = np.zeros(int(kind.max(initial=-1)) + 1)
    for number in range(len(fast)):
        fast[number] = np.quantile(shortest[kind == number], _FAST_SHARE)
    return fast[kind]
