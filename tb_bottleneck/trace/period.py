"""Finds the iterations of a loop that nobody annotated, from operators that come once per iteration.

In a training loop some operators come exactly once per iteration (a loss, a pooling layer), so their counts agree, and
they come in the same order each time. The count that most distinct names share is the number of iterations, if those
names really interleave; the first of them in time marks where an iteration begins. Backward operators must be among
them: the layers of one forward pass repeat too, but between two of them no backward pass runs.
"""

from collections import Counter

import numpy as np

from tb_bottleneck.trace.kinds import Kind
from tb_bottleneck.trace.table import Ints
from tb_bottleneck.trace.trace import Trace

# Names that come this often or more seldom show no cadence.
MIN_ITERATIONS = 3
# Fewer agreeing names could agree by chance.
MIN_NAMES = 3
# The share of their calls that must lie within their iteration: now and then one comes out of turn.
IN_TURN = 0.9
# An iteration this many times the median is start-up, not cadence (the outlier rule of the method: 3 x median).
OUTLIER = 3.0


def find_period(trace: Trace) -> Ints:
    """Begins of the iterations in ns, and the end of the last one; empty where no period is found.

    Leading iterations longer than OUTLIER x the median are left out: they are warm-up.
    """
    rows = trace.rows(Kind.CPU_OP)
    names, inverse, counts = np.unique(trace.events.name[rows], return_inverse=True, return_counts=True)
    by_name, ends = rows[np.argsort(inverse, kind="stable")], np.cumsum(counts)
    tally = Counter(int(n) for n in counts if n > MIN_ITERATIONS)
    for iterations, agreeing in tally.most_common(3):
        if agreeing < MIN_NAMES:
            break
        members = np.flatnonzero(counts == iterations)
        if not any("ackward" in trace.names[name] for name in names[members]):
            continue
        times = trace.events.start[by_name[(ends[members] - iterations)[:, None] + np.arange(iterations)]]
        anchor = times[np.argmin(times[:, 0])]
        # The last iteration has no successor to end it, so it serves as the end of the one before.
        within = (times[:, :-1] >= anchor[:-1]) & (times[:, :-1] < anchor[1:])
        if within.mean() > IN_TURN:
            return _without_warmup(anchor)
    return np.empty(0, np.int64)


def _without_warmup(begins: Ints) -> Ints:
    lengths = np.diff(begins)
    steady = np.flatnonzero(lengths <= OUTLIER * np.median(lengths))
    return begins[steady[0] :] if len(steady) else begins
