"""Separates differences of step times from their noise.

The module makes two statements about the recorded steps: a 95 % bootstrap interval of the ratio of the medians (the
steps of both samples are drawn again with replacement), and a Mann-Whitney test of whether the samples differ at all.
Neither statement covers the variation between two starts of a training; to measure this variation, record several runs.

A single disturbed step, for example the step in which the profiler stops, changes neither statement. Long steps that
occur repeatedly are part of the run, but the median does not show them, for example if a run waits for its loader in
every fourth step. Therefore, the means of all steps are compared as well.
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb, erfc, inf, sqrt

import numpy as np

from tb_bottleneck.comparison.texts.value_text import RELEVANT_CHANGE
from tb_bottleneck.trace.table import Bools, Floats, Ints

# The usual significance level (Fisher 1925); two-sided.
SIGNIFICANCE_LEVEL = 0.05
BOOTSTRAP_DRAWS = 4000
BOOTSTRAP_SEED = 20  # the same recordings always give the same result
# Up to this many splits of the steps into two samples, the test counts them; for more, it uses the normal distribution.
MAX_EXACT_SPLITS = 20_000
MAX_COUNTED_STEPS = 64  # steps of both samples together; for more, splits are not counted
MAX_DRAWN_STEPS = 1000  # largest number of steps from which samples are drawn; more would only use memory
CONFIDENCE_PERCENTILES = (2.5, 97.5)
MIN_COMPARED_STEPS = 2  # per sample: one step does not show how much steps differ
# A disturbed step is longer than the median by 3.5 standard deviations of the others, which are estimated by the median
# absolute deviation: the outlier test that Iglewicz and Hoaglin (1993, "How to Detect and Handle Outliers") recommend.
# It is also longer than the median by at least a tenth, because among nearly equal steps, a smaller deviation changes
# no result.
OUTLIER_THRESHOLD = 3.5
STANDARD_DEVIATIONS_PER_MAD = 1.4826  # of a normal distribution
# In small samples, the median absolute deviation is too small by these factors, from 4 times on; for more than 9 times
# the factor is n / (n - 0.8) (Croux and Rousseeuw 1992, "Time-Efficient Algorithms for Two Highly Robust Estimators").
SMALL_SAMPLE_FACTORS = {4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}
SMALL_SAMPLE_OFFSET = 0.8
DISTURBED_FROM = 0.1
# Disturbed steps are isolated: at most one in ten, or a single one. If there are more, they belong to the run.
MAX_DISTURBED_SHARE = 0.1
MIN_STEPS_TO_DISTURB = 4  # for fewer steps, the median absolute deviation is that of one step
# The interval of a mean is too narrow for fewer steps (Hesterberg 2015, "What Teachers Should Know About the
# Bootstrap": by a factor of sqrt((n - 1) / n), and it does not know the tail of long steps).
MIN_STEPS_FOR_MEANS = 8


Times = Ints | Floats


@dataclass(frozen=True)
class Difference:
    """The difference between the step times of A and B.

    `speedup` is A's median / B's median, with the 95 % interval from `low` to `high`. `significant` is True if the
    medians differ beyond the noise. `mean_speedup` is A's mean / B's mean. `by_means` is True if the means give another
    result than the medians, because a run has repeated long steps. `test` explains the result in a sentence.
    """

    speedup: float
    low: float
    high: float
    significant: bool
    test: str
    mean_speedup: float
    by_means: bool = False
    is_known: bool = True  # False if a single step hides the noise

    @property
    def verdict(self) -> str:
        """How B differs from A: "faster", "slower", "none" (not beyond the noise) or "unknown" (the noise is unknown).
        If `by_means` is True, the means decide, otherwise the medians."""
        if not self.is_known:
            return "unknown"
        ratio = self.mean_speedup if self.by_means else self.speedup
        if not self.differs:
            return "none"
        return "faster" if ratio > 1 else "slower"

    @property
    def differs(self) -> bool:
        """True if the medians or the means of A and B differ beyond the noise."""
        return self.significant or self.by_means

    @property
    def noise(self) -> float:
        """The relative uncertainty of the speedup: half the width of its 95 % interval, divided by the speedup."""
        return (self.high - self.low) / 2 / self.speedup


def difference(a: Times, b: Times) -> Difference:
    """Returns the difference between the step times `a` and `b` of two runs. Both must have the same unit and at least
    one element. If one of them has fewer than MIN_COMPARED_STEPS, the result has `is_known` False."""
    speedup, mean_speedup = float(np.median(a) / np.median(b)), float(np.mean(a) / np.mean(b))
    if min(len(a), len(b)) < MIN_COMPARED_STEPS:
        which = "Each run" if max(len(a), len(b)) < MIN_COMPARED_STEPS else "One run"
        because = f"{which} has only one step, so the variation between steps is unknown."
        return Difference(speedup, speedup, speedup, False, because, mean_speedup, is_known=False)
    kept_a, kept_b = a[undisturbed(a)], b[undisturbed(b)]
    low, high = interval(kept_a, kept_b)
    low, high = min(low, speedup), max(high, speedup)
    by_means = _means_differ(kept_a, kept_b, speedup)
    counts = f"{len(kept_a)} steps against {len(kept_b)}"
    left_out = len(a) + len(b) - len(kept_a) - len(kept_b)
    without = f", without {left_out} disturbed step{'s' if left_out > 1 else ''}" if left_out else ""
    smallest_p = 2 / _splits(len(kept_a) + len(kept_b), len(kept_a))
    if smallest_p > SIGNIFICANCE_LEVEL:
        separate = bool(kept_a.min() > kept_b.max() or kept_b.min() > kept_a.max())
        result = (
            "every step of one run is longer than every step of the other" if separate else "their step times overlap"
        )
        test = f"{counts} are too few for a test{without}; {result}."
        return Difference(speedup, low, high, separate, test, mean_speedup, by_means)
    p = mann_whitney(kept_a, kept_b)
    significant = p < SIGNIFICANCE_LEVEL and not low <= 1 <= high
    result = f"{counts}{without}, Mann-Whitney test: p = {p:.2g}"
    if p < SIGNIFICANCE_LEVEL and not significant:
        result += f"; but the ratio of their medians is between {low:.3g} and {high:.3g}, which includes 1"
    return Difference(speedup, low, high, significant, f"{result}.", mean_speedup, by_means)


def undisturbed(times: Times) -> Bools:
    """Returns a mask of `times`, one per step, that excludes isolated long steps. If more than MAX_DISTURBED_SHARE of
    the steps (and more than one) are long, they are part of the run, and all steps are included."""
    mask = ordinary(times)
    return mask if (~mask).sum() <= max(1, int(MAX_DISTURBED_SHARE * len(times))) else np.ones(len(times), np.bool_)


def ordinary(times: Times) -> Bools:
    """Returns a mask of `times`, one per step: True for steps that are not outliers (see OUTLIER_THRESHOLD), which are
    much longer than the median."""
    if len(times) < MIN_STEPS_TO_DISTURB:
        return np.ones(len(times), np.bool_)
    median = float(np.median(times))
    count = len(times)
    factor = SMALL_SAMPLE_FACTORS.get(count, count / (count - SMALL_SAMPLE_OFFSET))
    deviation = STANDARD_DEVIATIONS_PER_MAD * factor * float(np.median(np.abs(times - median)))
    return np.asarray(times <= median + max(OUTLIER_THRESHOLD * deviation, DISTURBED_FROM * median), np.bool_)


def _means_differ(a: Times, b: Times, speedup: float) -> bool:
    """Returns True if the ratio of the means of `a` and `b` differs from 1, and from `speedup` (ratio of the medians).

    Both differences must be at least RELEVANT_CHANGE (relative), and 1 and `speedup` must be outside of the 95 %
    interval of the ratio of the means. Returns False if a sample has fewer than MIN_STEPS_FOR_MEANS steps.
    """
    if min(len(a), len(b)) < MIN_STEPS_FOR_MEANS:
        return False
    low, high = mean_ratio_interval(a, b)
    ratio = float(np.mean(a) / np.mean(b))
    return all(
        not low <= other <= high and max(ratio / other, other / ratio) >= 1 + RELEVANT_CHANGE
        for other in (1.0, speedup)
    )


def interval(a: Times, b: Times) -> tuple[float, float]:
    """Returns the bounds of the 95 % bootstrap interval of (median of `a` / median of `b`)."""
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    return _percentiles(*(_drawn_medians(sample, rng) for sample in (a, b)))


def mean_ratio_interval(a: Times, b: Times) -> tuple[float, float]:
    """Returns the bounds of the 95 % bootstrap interval of (mean of `a` / mean of `b`)."""
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    return _percentiles(*(_drawn_means(sample, rng) for sample in (a, b)))


def _percentiles(a: Floats, b: Floats) -> tuple[float, float]:
    """Returns the 2.5 % and the 97.5 % quantile of the ratios a / b."""
    low, high = np.percentile(a / b, CONFIDENCE_PERCENTILES)
    return float(low), float(high)


def mean_interval(times: Times) -> tuple[float, float]:
    """Returns the bounds of the 95 % bootstrap interval of the mean. For a single time, both bounds are this time."""
    low, high = np.percentile(_drawn_means(times, np.random.default_rng(BOOTSTRAP_SEED)), CONFIDENCE_PERCENTILES)
    return float(low), float(high)


def _drawn_means(times: Times, rng: np.random.Generator) -> Floats:
    """Returns the means of BOOTSTRAP_DRAWS bootstrap samples of `times`. The mean of more than MAX_DRAWN_STEPS times is
    normally distributed, so it is drawn from that distribution."""
    if len(times) > MAX_DRAWN_STEPS:
        means = rng.normal(np.mean(times), np.std(times) / sqrt(len(times)), BOOTSTRAP_DRAWS)
        return np.asarray(np.maximum(means, np.min(times)), np.float64)
    return np.asarray(rng.choice(times, (BOOTSTRAP_DRAWS, len(times))).mean(axis=1), np.float64)


def _drawn_medians(times: Times, rng: np.random.Generator) -> Floats:
    """Returns the medians of BOOTSTRAP_DRAWS bootstrap samples of `times`.

    The median of a large bootstrap sample is the quantile of `times` at a beta-distributed probability. For more than
    MAX_DRAWN_STEPS times, this probability is drawn instead of a sample.
    """
    if len(times) > MAX_DRAWN_STEPS:
        places = rng.beta((len(times) + 1) / 2, (len(times) + 1) / 2, BOOTSTRAP_DRAWS)
        return np.asarray(np.quantile(times, places), np.float64)
    return np.asarray(np.median(rng.choice(times, (BOOTSTRAP_DRAWS, len(times))), axis=1), np.float64)


def mann_whitney(a: Times, b: Times) -> float:
    """Returns the two-sided p-value of the Mann-Whitney test of two samples of step times: the share of all splits of
    the steps into two such samples whose rank sums differ from the expected rank sum by at least as much."""
    ranks = _ranks(np.concatenate((a, b)).astype(np.float64))
    mean_sum = len(a) * (len(ranks) + 1) / 2
    deviation = abs(float(ranks[: len(a)].sum()) - mean_sum)
    if _splits(len(ranks), len(a)) > MAX_EXACT_SPLITS:
        return _by_normal(ranks, len(a), deviation)
    sums = ranks[np.array(list(combinations(range(len(ranks)), len(a))))].sum(axis=1)
    return float(np.mean(np.abs(sums - mean_sum) >= deviation - 1e-9))


def _splits(count: int, size: int) -> float:
    """Returns the number of ways to choose `size` of `count` steps; infinity for more than MAX_COUNTED_STEPS steps, for
    which the exact number is not needed."""
    return float(comb(count, size)) if min(size, count - size) < 2 or count <= MAX_COUNTED_STEPS else inf


def _ranks(values: Floats) -> Floats:
    """Returns the rank of each value in ascending order, from 1. Equal values get their mean rank."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2)[which], np.float64)


def _by_normal(ranks: Floats, size: int, deviation: float) -> float:
    """Returns the two-sided p-value of the Mann-Whitney test for many steps, whose rank sum is normally distributed.

    `ranks` are the ranks of the steps of both samples. `size` is the size of the first sample. `deviation` is the
    difference between its rank sum and the expected rank sum. Ties reduce the variance (Lehmann, Nonparametrics, 1975).
    """
    count = len(ranks)
    spread = sqrt(size * (count - size) / (count - 1) * float(np.var(ranks)))
    return erfc(max(deviation - 0.5, 0.0) / spread / sqrt(2)) if spread else 1.0
