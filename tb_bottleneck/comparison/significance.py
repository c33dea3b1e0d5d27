"""Tells a difference of step times from their spread.

Two statements, both about the steps that were recorded: a 95 % interval of the speedup by bootstrap (both sides'
steps drawn anew, with replacement), and whether the sides differ at all, by the Mann-Whitney test. What varies from one
start of a training to the next is in neither: for that, record several runs.
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb, erfc, inf, sqrt

import numpy as np

from tb_bottleneck.trace.table import Floats, Ints

# The usual level of a test (Fisher 1925); two-sided.
SIGNIFICANCE_LEVEL = 0.05
BOOTSTRAP_DRAWS = 4000
BOOTSTRAP_SEED = 20  # the same recordings get the same answer
# Up to this many splits of the steps into two sides the test counts them; beyond it takes the normal distribution.
MAX_EXACT_SPLITS = 20_000
MAX_COUNTED_STEPS = 64  # steps of both sides together, of which splits are counted at all
MAX_DRAWN_STEPS = 1000  # steps; 4,000 draws of more of them take memory for nothing
CONFIDENCE_PERCENTILES = (2.5, 97.5)
MIN_COMPARED_STEPS = 2  # of each side: one does not tell how much steps differ


Times = Ints | Floats


@dataclass(frozen=True)
class Difference:
    """`speedup` = A's mean / B's mean with its 95 % interval; `told`: beyond the noise; `test`: how that was told."""

    speedup: float
    low: float
    high: float
    told: bool
    test: str

    @property
    def noise(self) -> float:
        """Half the interval's width, as a share of the speedup."""
        return (self.high - self.low) / 2 / self.speedup


def difference(a: Times, b: Times) -> Difference:
    """Step times of A against those of B, in any unit."""
    speedup = float(np.mean(a) / np.mean(b))
    if min(len(a), len(b)) < MIN_COMPARED_STEPS:
        which = "Each side" if max(len(a), len(b)) < MIN_COMPARED_STEPS else "One side"
        return Difference(
            speedup, speedup, speedup, False, f"{which} has one step only, so how much steps differ is not known."
        )
    low, high = interval(a, b)
    runs = f"{len(a)} steps against {len(b)}"
    least = 2 / _splits(len(a) + len(b), len(a))
    if least > SIGNIFICANCE_LEVEL:
        apart = bool(a.min() > b.max() or b.min() > a.max())
        said = "every step of one side is longer than every step of the other" if apart else "their step times overlap"
        return Difference(speedup, low, high, apart, f"{runs} are too few for a test; {said}.")
    p = mann_whitney(a, b)
    told = p < SIGNIFICANCE_LEVEL and not low <= 1 <= high
    said = f"{runs}, Mann-Whitney test: p = {p:.2g}"
    if p < SIGNIFICANCE_LEVEL and not told:
        said += f"; but their means may be in a ratio of {low:.3g} to {high:.3g}, which holds 1"
    return Difference(speedup, low, high, told, f"{said}.")


def interval(a: Times, b: Times) -> tuple[float, float]:
    """The 95 % interval of A's mean / B's mean, by bootstrap."""
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    means = [_drawn_means(sample, rng) for sample in (a, b)]
    low, high = np.percentile(means[0] / means[1], CONFIDENCE_PERCENTILES)
    return float(low), float(high)


def mean_interval(times: Times) -> tuple[float, float]:
    """The 95 % interval of the mean, by bootstrap; the mean itself where there is one time."""
    low, high = np.percentile(_drawn_means(times, np.random.default_rng(BOOTSTRAP_SEED)), CONFIDENCE_PERCENTILES)
    return float(low), float(high)


def _drawn_means(times: Times, rng: np.random.Generator) -> Floats:
    """Means of as many times drawn anew; of many times their mean is normal, and is drawn itself."""
    if len(times) > MAX_DRAWN_STEPS:
        drawn = rng.normal(np.mean(times), np.std(times) / sqrt(len(times)), BOOTSTRAP_DRAWS)
        return np.asarray(np.maximum(drawn, np.min(times)), np.float64)
    return np.asarray(rng.choice(times, (BOOTSTRAP_DRAWS, len(times))).mean(axis=1), np.float64)


def mann_whitney(a: Times, b: Times) -> float:
    """The two-sided p of the Mann-Whitney test: how often a random split of all steps ranks as unevenly."""
    ranks = _ranks(np.concatenate((a, b)).astype(np.float64))
    usual = len(a) * (len(ranks) + 1) / 2
    seen = abs(float(ranks[: len(a)].sum()) - usual)
    if _splits(len(ranks), len(a)) > MAX_EXACT_SPLITS:
        return _by_normal(ranks, len(a), seen)
    sums = ranks[np.array(list(combinations(range(len(ranks)), len(a))))].sum(axis=1)
    return float(np.mean(np.abs(sums - usual) >= seen - 1e-9))


def _splits(count: int, size: int) -> float:
    """How many splits there are, as far as it matters: the number for a million steps has 300,000 digits."""
    return float(comb(count, size)) if min(size, count - size) < 2 or count <= MAX_COUNTED_STEPS else inf


def _ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[which], np.float64)


def _by_normal(ranks: Floats, size: int, seen: float) -> float:
    """The same for many steps, where the rank sum is normal; ties narrow it (Lehmann, Nonparametrics, 1975)."""
    count = len(ranks)
    spread = sqrt(size * (count - size) / (count - 1) * float(np.var(ranks)))
    return erfc(max(seen - 0.5, 0.0) / spread / sqrt(2)) if spread else 1.0
