"""Finds the iterations of a loop without step annotations, from operators that run once per iteration.

In a training loop some operators run exactly once per iteration (a loss, a pooling layer): their counts are equal and
their order is the same each time. The count that most distinct names share is the number of iterations, if these names
interleave; the earliest of them marks the start of an iteration. Backward operators must be among them: the layers of
one forward pass repeat too, but no backward pass runs between them.
"""

from collections import Counter

import numpy as np

from tb_bottleneck.base.order_statistics import distinct_rows
from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Ints
from tb_bottleneck.trace.trace import Trace

# Names with this many calls or fewer show no period.
MIN_ITERATIONS = 3
# Fewer names could have equal counts by chance.
MIN_NAMES = 3
# Share of the calls that must be inside their iteration; a few may be out of order.
IN_TURN = 0.9
# An iteration longer than this many times the median is start-up.
OUTLIER = 3.0


def find_period(trace: Trace) -> Ints:
    """Returns the starts of the iterations and the end of the last one, in ns; empty if no period is found.

    Leading iterations longer than OUTLIER times the median are warm-up and left out.
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
