"""Finds the iterations of a training loop without step annotations, from operators that repeat."""

from collections import Counter

import numpy as np

from tb_bottleneck.base.arrays import distinct_rows
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Ints
from tb_bottleneck.trace.trace import Trace

# An operator with this many calls or fewer does not show a period.
MIN_ITERATIONS = 3
# At least this many operators must have the same number of calls. Fewer could have equal numbers by chance.
MIN_NAMES = 3
# More than this share of the calls must be inside the iteration that they belong to. A few may be out of order.
IN_TURN = 0.9
# A first iteration longer than this many times the median is warm-up.
OUTLIER = 3.0


def find_period(trace: Trace) -> Ints:
    """Finds the iterations of a training loop without step annotations from the operators that repeat.

    Returns the start of each iteration in ns, except that the last element is the end of the last complete iteration.
    Empty if no period is found.

    In a training loop, some operators run exactly once per iteration, such as a loss or a pooling layer. These
    operators have the same number of calls and the same order in each iteration. The number of calls that most operator
    names share is the number of iterations, if the calls of these names take turns. The name that is called first marks
    the start of an iteration. One of the names must be a backward operator, because the layers of one forward pass
    repeat, too, but without a backward pass between them. The last iteration is left out, because no later start shows
    its end.

    Iterations at the start that are longer than OUTLIER times the median are left out as warm-up.
    """
    rows = trace.rows(Kind.CPU_OP)
    first, which = distinct_rows(trace.events.name[rows])
    names, counts = trace.events.name[rows[first]], np.bincount(which, minlength=len(first))
    by_name, ends = rows[np.argsort(which, kind="stable")], np.cumsum(counts)
    tally = Counter(int(n) for n in counts if n > MIN_ITERATIONS)
    for iterations, agreeing in tally.most_common(3):
        if agreeing < MIN_NAMES:
            break
        members = np.flatnonzero(counts == iterations)
        if not any("ackward" in trace.names[name] for name in names[members]):
            continue
        times = trace.events.start[by_name[(ends[members] - iterations)[:, None] + np.arange(iterations)]]
        anchor = times[np.argmin(times[:, 0])]
        # The last iteration has no successor that ends it, so it only ends the one before.
        within = (times[:, :-1] >= anchor[:-1]) & (times[:, :-1] < anchor[1:])
        if within.mean() > IN_TURN:
            return _without_warmup(anchor)
    return np.empty(0, np.int64)


def _without_warmup(begins: Ints) -> Ints:
    lengths = np.diff(begins)
    steady = np.flatnonzero(lengths <= OUTLIER * np.median(lengths))
    return begins[steady[0] :] if len(steady) else begins
