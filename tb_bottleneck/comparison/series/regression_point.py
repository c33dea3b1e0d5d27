"""Finds the run since which a series of runs is slower, and the regime that grew."""

from collections.abc import Sequence

import numpy as np

from tb_bottleneck.comparison.significance import Difference, difference
from tb_bottleneck.comparison.texts.value_text import RELEVANT_CHANGE, time_text
from tb_bottleneck.knowledge.comparison_texts import series_text
from tb_bottleneck.regime import Regime
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.trace.table import Floats
from tb_bottleneck.units import duration_text

MIN_SERIES_RUNS = 2  # one run is neither faster nor slower
Accounts = Sequence[dict[Regime, float]]


def regression_point_of(
    names: Sequence[str], times: Sequence[Floats], accounts: Accounts, per: str
) -> pb.RegressionPoint | None:
    """Returns the run at which the series gets slower, if it does so beyond the noise, otherwise None.

    `times` are the step times of each run, `accounts` the time by regime, all in ns. The series is split where the
    squared deviation of log time within the two parts is smallest. The split counts if the later part takes
    RELEVANT_CHANGE longer and the steps of the two parts differ significantly (significance.py). If the later part is
    faster by as much instead, only the runs since then are considered.
    """
    begin = 0
    while len(times) - begin >= MIN_SERIES_RUNS:
        at, slowdown = _best_split(accounts[begin:])
        at += begin
        result = difference(np.concatenate(times[begin:at]), np.concatenate(times[at:]))
        if not result.differs or 1 / (1 + RELEVANT_CHANGE) < slowdown < 1 + RELEVANT_CHANGE:
            return None
        if slowdown > 1:
            parts = _mean(accounts[begin:at]), _mean(accounts[at:])
            return _described(names[begin:], at - begin, parts, (per, slowdown, result), begin > 0)
        begin = at
    return None


def _best_split(accounts: Accounts) -> tuple[int, float]:
    """Returns the first run of the later part, and mean time of its runs / mean time of the earlier ones."""
    means = np.log([sum(account.values()) for account in accounts])
    splits = range(1, len(means))
    at = min(
        splits, key=lambda split: float(np.var(means[:split]) * split + np.var(means[split:]) * (len(means) - split))
    )
    return at, float(np.exp(means[at:].mean() - means[:at].mean()))


def _described(
    names: Sequence[str],
    at: int,
    parts: tuple[dict[Regime, float], dict[Regime, float]],
    how: tuple[str, float, Difference],
    cut: bool,
) -> pb.RegressionPoint:
    """Returns the regression point with its description; `cut` is True if earlier runs were left out."""
    (before, after), (per, slowdown, result) = parts, how
    regime = max(before, key=lambda name: after[name] - before[name])
    since_when = f"from {names[0]} to {names[at - 1]}" if at > 1 else f"in {names[0]}"
    because = series_text("regression").safe_substitute(
        {
            "since": names[at],
            "when": since_when if cut else f"up to {names[at - 1]}",
            "per": per,
            "slowdown": f"{slowdown:.2f}",
            "from": duration_text(sum(before.values())),
            "to": duration_text(sum(after.values())),
            "title": Regime(regime).label.lower(),
            "before": time_text(before[regime]),
            "after": time_text(after[regime]),
            "test": result.test,
        }
    )
    return pb.RegressionPoint(
        since=names[at], last_good=names[at - 1], regime=regime, slowdown=slowdown, because=because
    )


def _mean(accounts: Accounts) -> dict[Regime, float]:
    return {regime: float(np.mean([account[regime] for account in accounts])) for regime in accounts[0]}
