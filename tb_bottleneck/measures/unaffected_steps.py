"""The upper limit of the gain of a fix, derived from the steps of a run that do not have the cause.

An interruption, a pause of Python, a late batch or other programs for a minute affect some steps only. The unaffected
steps show the time of a step without the cause, so a fix cannot make the mean step shorter than the unaffected steps.
The lower limit of the mean step is the 10th percentile of the unaffected steps' times, which a report also shows as the
fast end of the step times. Unlike the minimum, this percentile does not depend on a single incomplete step. At least
three unaffected steps are needed, as for a median that ignores one outlier. If a cause affects all steps, such as too
many threads or small kernels, there is no limit, because no step shows the time without the cause.
"""

import numpy as np
from numpy.typing import NDArray

from tb_bottleneck.base.arrays import percentile

FAST = 10.0
MIN_WITHOUT = 3
# A cost of a smaller share of the step cannot be distinguished from the noise between two runs of one training (a few
# percent).
NEGLIGIBLE = 0.02

BESIDE_WRITER = 0.25
"""Lower bound of: time of a step without TensorBoard's writer / time of a step while the writer's thread runs.

Measured on a CPU with histograms in every step: 0.30 and 0.42 (two trainings, torch 2.13 and 2.15). The thread holds
the interpreter's lock while it encodes, and affects every step, so no step shows the time without the writer.
"""


def fast_step(times: NDArray[np.float64], costs: NDArray[np.float64]) -> float:
    """Returns the lower limit of the mean step time after a fix, in the unit of the arguments.

    `times` has the time of each step, and `costs` the time that the cause takes in each step. Steps with a cost of at
    most NEGLIGIBLE x their time count as unaffected. Returns 0 if no limit is known: no step is affected, or fewer than
    MIN_WITHOUT steps are unaffected.
    """
    without = times[np.abs(costs) <= NEGLIGIBLE * times]
    return percentile(without, FAST) if MIN_WITHOUT <= len(without) < len(times) else 0.0
