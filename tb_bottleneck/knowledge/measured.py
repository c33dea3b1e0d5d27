"""Figures that were measured elsewhere: gains of changes of trainings, and costs of the profiler.

The gains are in knowledge/measured_changes.toml, the costs of recording by version of Python in
knowledge/profiler_costs.toml.
"""

from functools import cache
from math import exp, log, sqrt

import numpy as np

from tb_bottleneck.base.measure import Record
from tb_bottleneck.knowledge.catalogue import load

# The 95 % quantile of Student's t by degrees of freedom; from many on that of the normal distribution.
T_QUANTILES = {
    2: 2.920, 3: 2.353, 4: 2.132, 5: 2.015, 6: 1.943, 7: 1.895, 8: 1.860, 9: 1.833, 10: 1.812, 11: 1.796, 12: 1.782,
    13: 1.771, 14: 1.761, 15: 1.753,
}  # fmt: skip
MANY = 1.645
MOST_OF_MEASURED = 2.0
"""No gain of more than this multiple of the highest measured one is stated: a choice. The interval of a large share has
no plausible end."""


class MeasuredGain(Record, frozen=True):
    """An estimated gain with its 90 % interval; `changes` is the number of measured changes that it comes from."""

    expected: float
    low: float
    high: float
    changes: int


def estimated_gain(cause: str, share: float) -> MeasuredGain | None:
    """Returns the gain of fixing a cause that takes this share of the time, 0 to 1; None if no change was measured.

    Such gains cannot be simulated. They follow from measured ones. A fix that removes the share s of the time gains

        1 / (1 - s)             if nothing else changes
        (1 / (1 - s)) ** k      in reality: other work gets faster, too (k > 1), or a part of the cost stays (k < 1)

    ln k of the measured changes is taken as normal. Low and high are the bounds of the 90 % prediction interval of
    another change (Student's t; Montgomery and Runger, Applied Statistics and Probability for Engineers, 8-6).
    """
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
    """Returns share and gain of the measured changes by cause."""
    return {
        cause: tuple((one["share"], one["gain"]) for one in change["measured"])
        for change in load("measured_changes.toml")["change"]
        for cause in change["causes"]
    }


class PythonCosts(Record, frozen=True):
    """The cost of recorded stacks in one version of Python, such as 3.11.

    `slowdown` is the least, the usual and the most time of bytecode / without a profiler; costs of calls are in ns.
    `bootstrap_lines` are the first and the last line of the frame that shows the version.
    """

    version: str
    slowdown: tuple[float, float, float]
    python_call_ns: float
    c_call_ns: float
    bootstrap_lines: tuple[int, int]


@cache
def python_costs() -> tuple[PythonCosts, ...]:
    """Returns the costs of all known versions, the oldest first."""
    return tuple(
        PythonCosts(
            entry["version"],
            tuple(entry["slowdown"]),
            entry["python_call_ns"],
            entry["c_call_ns"],
            tuple(entry["bootstrap_lines"]),
        )
        for entry in load("profiler_costs.toml")["python"]
    )


@cache
def operator_cost_ns(stacks: bool) -> float:
    """Returns the time in ns that recording an operator takes, with or without stacks."""
    (entry,) = load("profiler_costs.toml")["operator"]
    return float(entry["with_stacks_ns" if stacks else "without_stacks_ns"])
