"""Figures that were measured elsewhere: gains of changes of trainings, and costs of the profiler.

The gains are in knowledge/measured_changes.toml. The costs of recording are in knowledge/profiler_costs.toml, for each
version of Python.
"""

from functools import cache
from math import exp, log, sqrt

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.knowledge.catalogue import load, typed

# The 95 % quantile of Student's t distribution by degrees of freedom. For more degrees of freedom, MANY is used, the
# quantile of the normal distribution.
T_QUANTILES = {
    2: 2.920, 3: 2.353, 4: 2.132, 5: 2.015, 6: 1.943, 7: 1.895, 8: 1.860, 9: 1.833, 10: 1.812, 11: 1.796, 12: 1.782,
    13: 1.771, 14: 1.761, 15: 1.753,
}  # fmt: skip
MANY = 1.645
MOST_OF_MEASURED = 2.0
"""Largest gain that is stated, as a multiple of the highest measured gain. Chosen, because the interval for a large
share of the time has no plausible end."""


class MeasuredGain(Record, frozen=True):
    """An estimated gain, the time before a change / the time after it, with the 90 % interval from `low` to `high`.

    `changes` is the number of measured changes on which the estimate is based."""

    expected: float
    low: float
    high: float
    changes: int


def estimated_gain(cause: str, share: float) -> MeasuredGain | None:
    """Returns the gain of fixing `cause`, which takes the fraction `share` of the time, between 0 and 1 (exclusive).

    Returns None if no change for this cause was measured, or if `share` is out of range. The gain is not simulated, but
    follows from measured gains of the same kind of change. A fix that removes the share s of the time gains

        1 / (1 - s)             if nothing else changes
        (1 / (1 - s)) ** k      in reality: other work gets faster, too (k > 1), or a part of the cost stays (k < 1)

    ln k of the measured changes is assumed to be normally distributed. `low` and `high` are the bounds of the 90 %
    prediction interval of one more change (Student's t; Montgomery and Runger, Applied Statistics and Probability for
    Engineers, 8-6)."""
    measured = _measured().get(cause)
    if measured is None or not 0 < share < 1:
        return None
    exponents = [log(log(gain) / -log(1 - before)) for before, gain in measured]
    mean, spread = float(np.mean(exponents)), float(np.std(exponents, ddof=1))
    reach = T_QUANTILES.get(len(exponents) - 1, MANY) * spread * sqrt(1 + 1 / len(exponents))
    most = MOST_OF_MEASURED * max(gain for _, gain in measured)
    low, expected, high = (min((1 - share) ** -exp(power), most) for power in (mean - reach, mean, mean + reach))
    return MeasuredGain(expected, low, high, len(exponents))


@cache
def _measured() -> dict[str, tuple[tuple[float, float], ...]]:
    """Returns a dict: cause -> pairs (share, gain) of its measured changes. The share is the fraction of the time that
    the cause took."""
    return {
        cause: tuple((one["share"], one["gain"]) for one in change["measured"])
        for change in load("measured_changes.toml")["change"]
        for cause in change["causes"]
    }


class PythonCosts(Record, frozen=True):
    """How much the profiler slows down one `version` of Python, for example 3.11, if the profiler records Python
    stacks.

    `slowdown` has the lowest, the usual and the highest value of (time of bytecode with the profiler / without it). The
    costs per call are in ns. `bootstrap_lines` has the lowest and the highest line number that the frame
    `threading.py(LINE): _bootstrap` has in this version: these numbers show the Python version of a recording that does
    not state it.
    """

    version: str
    slowdown: tuple[float, float, float]
    python_call_ns: float
    c_call_ns: float
    bootstrap_lines: tuple[int, int]


@cache
def python_costs() -> tuple[PythonCosts, ...]:
    """Returns the costs of all known versions, the oldest first."""
    return typed("profiler_costs.toml", tuple[PythonCosts, ...], load("profiler_costs.toml")["python"])


@cache
def operator_cost_ns(stacks: bool) -> float:
    """Returns the time in ns that recording an operator takes, with or without stacks."""
    (entry,) = load("profiler_costs.toml")["operator"]
    return float(entry["with_stacks_ns" if stacks else "without_stacks_ns"])
