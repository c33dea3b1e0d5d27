"""The run since which a row of runs is slower, and the regime that grew."""

from collections.abc import Sequence

import numpy as np

from tb_bottleneck.comparison.noise import difference
from tb_bottleneck.comparison.pace import time_text
from tb_bottleneck.knowledge.comparing import series_words
from tb_bottleneck.knowledge.words import regime_advice
from tb_bottleneck.schema import comparison_pb2 as pb
from tb_bottleneck.trace.table import Floats
from tb_bottleneck.units import duration_text

# Less is what one training differs from itself by when it is started again.
WORTH_TELLING = 0.05


def turn_of(
    names: Sequence[str], times: Sequence[Floats], accounts: Sequence[dict[str, float]], per: str
) -> pb.Turn | None:
    """Where the row splits best into faster runs and slower ones after them, if it does beyond the noise.

    `times` are step times of each run, `accounts` time by regime, all in ns. The best split is the one that leaves the
    least squared deviation of log time within its two parts; it counts where the later part takes WORTH_TELLING longer
    and the two parts' steps differ by the test of noise.py.
    """
    means = np.log([sum(account.values()) for account in accounts])
    splits = range(1, len(means))
    at = min(
        splits, key=lambda split: float(np.var(means[:split]) * split + np.var(means[split:]) * (len(means) - split))
    )
    slowdown = float(np.exp(means[at:].mean() - means[:at].mean()))
    found = difference(np.concatenate(times[:at]), np.concatenate(times[at:]))
    if slowdown < 1 + WORTH_TELLING or not found.told:
        return None
    before, after = (_mean(part) for part in (accounts[:at], accounts[at:]))
    regime = max(before, key=lambda one: after[one] - before[one])
    because = series_words("turn").safe_substitute(
        {
            "since": names[at],
            "last_good": names[at - 1],
            "per": per,
            "slowdown": f"{slowdown:.2f}",
            "from": duration_text(sum(before.values())),
            "to": duration_text(sum(after.values())),
            "title": regime_advice(regime).title.lower(),
            "before": time_text(before[regime]),
            "after": time_text(after[regime]),
            "test": found.test,
        }
    )
    return pb.Turn(since=names[at], last_good=names[at - 1], regime=regime, slowdown=slowdown, because=because)


def _mean(accounts: Sequence[dict[str, float]]) -> dict[str, float]:
    return {regime: float(np.mean([account[regime] for account in accounts])) for regime in accounts[0]}
