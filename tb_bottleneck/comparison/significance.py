"""Separates differences of step times from their noise.

Two statements about the recorded steps: a 95 % bootstrap interval of the speedup (the steps of both samples are drawn
again with replacement), and a Mann-Whitney test of whether the samples differ at all. Neither covers the variation
between two starts of a training; record several runs for that.
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb, erfc, inf, sqrt

import numpy as np

from tb_bottleneck.trace.table import Floats, Ints

# The usual significance level (Fisher 1925); two-sided.
SIGNIFICANCE_LEVEL = 0.05
BOOTSTRAP_DRAWS = 4000
BOOTSTRAP_SEED = 20  # the same recordings always give the same result
# Up to this many splits of the steps into two samples, the test counts them; for more, it uses the normal distribution.
MAX_EXACT_SPLITS = 20_000
MAX_COUNTED_STEPS = 64  # steps of both samples together; for more, splits are not counted
MAX_DRAWN_STEPS = 1000  # steps; for more, 4,000 draws only use memory
CONFIDENCE_PERCENTILES = (2.5, 97.5)
MIN_COMPARED_STEPS = 2  # per sample: one step does not show how much steps differ


Times = Ints | Floats


@dataclass(frozen=True)
class Difference:
    """The speedup (A's mean / B's mean) with its 95 % interval, and whether it is significant; `test` explains why."""

    speedup: float
    low: float
    high: float
    significant: bool
    test: str
    is_known: bool = True  # False if a single step hides the noise

    @property
    def verdict(self) -> str:
        """The difference of B from A: faster, slower, none or unknown."""
        if not self.is_known:
            return "unknown"
        if not self.significant:
            return "none"
        return "faster" if self.speedup > 1 else "slower"

    @property
    def noise(self) -> float:
        """Half the width of the interval, as a share of the speedup."""
        return (self.high - self.low) / 2 / self.speedup


def difference(a: Times, b: Times) -> Difference:
    """Compares the step times of A and B, given in the same unit."""
    speedup = float(np.mean(a) / np.mean(b))
    if min(len(a), len(b)) < MIN_COMPARED_STEPS:
        which = "Each run" if max(len(a), len(b)) < MIN_COMPARED_STEPS else "One run"
        because = f"{which} has only one step, so the variation between steps is unknown."
        return Difference(speedup, speedup, speedup, False, because, is_known=False)
    low, high = interval(a, b)
    counts = f"{len(a)} steps against {len(b)}"
    smallest_p = 2 / _splits(len(a) + len(b), len(a))
    if smallest_p > SIGNIFICANCE_LEVEL:
        separate = bool(a.min() > b.max() or b.min() > a.max())
        result = (
            "every step of one run is longer than every step of the other" if separate else "their step times overlap"
        )
        return Difference(speedup, low, high, separate, f"{counts} are too few for a test; {result}.")
    p = mann_whitney(a, b)
    significant = p < SIGNIFICANCE_LEVEL and not low <= 1 <= high
    result = f"{counts}, Mann-Whitney test: p = {p:.2g}"
    if p < SIGNIFICANCE_LEVEL and not significant:
        result += f"; but the ratio of their means is between {low:.3g} and {high:.3g}, which includes 1"
    return Difference(speedup, low, high, significant, f"{result}.")


def interval(a: Times, b: Times) -> tuple[float, float]:
    """Returns the 95 % interval of A's mean / B's mean, by bootstrap."""
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    means = [_drawn_means(sample, rng) for sample in (a, b)]
    low, high = np.percentile(means[0] / means[1], CONFIDENCE_PERCENTILES)
    return float(low), float(high)


def mean_interval(times: Times) -> tuple[float, float]:
    """Returns the 95 % interval of the mean, by bootstrap; for a single time, that time."""
    low, high = np.percentile(_drawn_means(times, np.random.default_rng(BOOTSTRAP_SEED)), CONFIDENCE_PERCENTILES)
    return float(low), float(high)


def _drawn_means(times: Times, rng: np.random.Generator) -> Floats:
    """Returns the means of bootstrap samples. The mean of many times is normal, so it is drawn directly."""
    if len(times) > MAX_DRAWN_STEPS:
        means = rng.normal(np.mean(times), np.std(times) / sqrt(len(times)), BOOTSTRAP_DRAWS)
        return np.asarray(np.maximum(means, np.min(times)), np.float64)
    return np.asarray(rng.choice(times, (BOOTSTRAP_DRAWS, len(times))).mean(axis=1), np.float64)


def mann_whitney(a: Times, b: Times) -> float:
    """Returns the two-sided p of the Mann-Whitney test: how often a random split of all steps ranks as unevenly."""
    ranks = _ranks(np.concatenate((a, b)).astype(np.float64))
    mean_sum = len(a) * (len(ranks) + 1) / 2
    deviation = abs(float(ranks[: len(a)].sum()) - mean_sum)
    if _splits(len(ranks), len(a)) > MAX_EXACT_SPLITS:
        return _by_normal(ranks, len(a), deviation)
    sums = ranks[np.array(list(combinations(range(len(ranks)), len(a))))].sum(axis=1)
    return float(np.mean(np.abs(sums - mean_sum) >= deviation - 1e-9))


def _splits(count: int, size: int) -> float:
    """Returns the number of splits, or infinity if it is large: for a million steps it has 300,000 digits."""
    return float(comb(count, size)) if min(size, count - size) < 2 or count <= MAX_COUNTED_STEPS else inf


def _ranks(values: Floats) -> Floats:
    """Returns the ranks from 1; equal values share their mean rank."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[which], np.float64)


def _by_normal(ranks: Floats, size: int, deviation: float) -> float:
    """Returns p for many steps, where the rank sum is normal; ties narrow it (Lehmann, Nonparametrics, 1975)."""
    count = len(ranks)
    spread = sqrt(size * (count - size) / (count - 1) * float(np.var(ranks)))
    return erfc(max(deviation - 0.5, 0.0) / spread / sqrt(2)) if spread else 1.0
