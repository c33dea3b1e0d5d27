"""The limit that a run's fast steps set to the gain of a fix.

An interruption, a pause of Python, a late batch or a crowded minute is in some steps only. The other steps show what a
step without the cause takes, so a fix cannot make the mean step shorter than they are. The limit is their 10th
percentile, the fast end of the step times in a report: nine in ten of them take longer, so their mean is above it
unless a few are far shorter, and a single incomplete step does not set it as a minimum would. At least three of them
are needed, as for a median that outvotes one outlier. A cause that is in all steps, such as too many threads or small
kernels, is not limited: no step shows the time without it.
"""

import numpy as np
from numpy.typing import NDArray

from tb_bottleneck.base.order_statistics import percentile

FAST = 10.0
MIN_WITHOUT = 3
# A smaller cost is not distinguishable from the noise between two runs of one training (a few percent).
NEGLIGIBLE = 0.02

BESIDE_WRITER = 0.25
"""The time of a step without TensorBoard's writer / the time beside its thread, at least. Measured on a CPU with
histograms in every step: 0.30 and 0.42 (two trainings, torch 2.13 and 2.15). The thread holds the interpreter's lock
while it encodes what it writes, and every step has it, so no step shows the time without it."""


def fast_step(times: NDArray[np.float64], costs: NDArray[np.float64]) -> float:
    """Returns the time that the mean step reaches at best, from the steps and the time of the cause in each of them.

    Both are in the same unit. Returns 0 if no limit is known: the cause is in all steps, or in all but a few.
    """
    without = times[np.abs(costs) <= NEGLIGIBLE * times]
    return percentile(without, FAST) if MIN_WITHOUT <= len(without) < len(times) else 0.0
