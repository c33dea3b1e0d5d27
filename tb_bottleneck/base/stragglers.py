"""Which ranks of a synchronous job are slow. Traces, accounts of single recordings and heartbeats all use this
judgement.

In synchronous training, all ranks have equally long steps, because they wait for each other in the collectives. A slow
rank differs in its own time, which is the time without waiting for other ranks: its own time exceeds that of its peers,
and the peers wait for it. (The rank in which a delay first appears is the suspect: StageFrontier, arXiv 2606.06751.)
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

EXCESS = 0.10
"""A rank whose typical step is known is slow if its own time exceeds the usual own time by at least this share of the
step: traceml's warning level for its straggler score (diagnostics/step_time/policy.py)."""

EXCESS_IN_MOST_STEPS = 0.05
"""A rank with a known own time in each step is slow from this share of the usual own time on, because the steps confirm
each other. msprof-analyze calls a card slow from 5 % on."""

MOST_STEPS = 0.8
"""A rank must be slow in at least this share of the steps, so that a single event does not count."""


def lower_median(values: Floats) -> Floats:
    """Returns the lower median of `values` over the first axis: of an even number of values, the lower one of the two
    in the middle. NaN values are ignored; the result is NaN where all values are NaN."""
    if not len(values):
        return np.full(values.shape[1:], np.nan)
    ordered = np.sort(values, axis=0)  # NaN last
    known = np.count_nonzero(~np.isnan(values), axis=0)
    middle = np.maximum(known - 1, 0) // 2
    return np.asarray(np.take_along_axis(ordered, middle[None], axis=0)[0], np.float64)


def slow_ranks(own: Floats, step: float = 1.0) -> list[tuple[int, float]]:
    """Returns (position, excess) of each slow rank, the slowest first, from one typical own time per rank.

    `own` has the unit of `step`, the step time. The excess is the own time minus the usual own time, which is the lower
    median, so that of two ranks the faster one is usual.
    """
    excess = own - lower_median(own)
    slow = np.flatnonzero(excess >= EXCESS * step)
    return [(at, float(excess[at])) for at in sorted(slow.tolist(), key=lambda at: (-excess[at], at))]


def in_most_steps(over: Bools, own: Floats) -> Bools:
    """Returns a mask of the ranks for which `over` is True in at least MOST_STEPS of their recorded steps.

    Ranks with a single recorded step do not count. `over` and `own` have the shape (ranks, steps); `own` is NaN in
    unrecorded steps.
    """
    known = ~np.isnan(own)
    count = known.sum(axis=1)
    return np.asarray(((over & known).sum(axis=1) >= MOST_STEPS * count) & (count > 1), np.bool_)
