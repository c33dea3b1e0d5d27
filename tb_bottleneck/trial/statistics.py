"""Computes the gain of a change from pairs of blocks, its confidence interval, and whether more pairs are needed.

A pair has one block (run) of the unchanged and one of the changed program. The two train in turns (turns.py), so that
drift of the machine affects both. The logarithm of the ratio of the two step times is one observation. The confidence
interval of the mean of the observations is computed from Student's t distribution. Because the interval is checked
after each pair, the verdict "faster" or "slower" needs the interval at 99.5 %. The reported interval is that at 95 %,
widened so that it also holds for another trial on this machine. "No difference" is a test of equivalence by two
one-sided tests at 5 %, which uses the interval at 90 % (Schuirmann 1987).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

MIN_PAIRS = 3
NO_DIFFERENCE = 0.03
"""If the interval of the gain at 90 % is within this distance of 1, the verdict is "no difference"."""
LOOK_AHEAD = 5
"""From this number of pairs on, a trial is ended if the gain cannot become known. A choice: with fewer pairs, the
spread of the observations is not known well enough."""
LEAST = 0.02
"""A gain that differs from 1 by less than this is never called "faster" or "slower"."""
BETWEEN_TRIALS = 0.02
"""Standard deviation of the logarithm of the gain between trials of the same change, in addition to the spread within a
trial. The reason is that the machine differs from minute to minute. Trials of one change, each with three pairs that
agreed within 1 %, differed by 3 % (the pairs of tests/trial/trials.jsonl with the narrowest intervals)."""
NORMAL95 = 1.96

# Two-sided quantiles of Student's t by degrees of freedom, 1 to 20 (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
T90 = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753, 1.746,
       1.740, 1.734, 1.729, 1.725)  # fmt: skip
T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
       2.110, 2.101, 2.093, 2.086)  # fmt: skip
T995 = (127.321, 14.089, 7.453, 5.598, 4.773, 4.317, 4.029, 3.833, 3.690, 3.581, 3.497, 3.428, 3.372, 3.326, 3.286,
        3.252, 3.222, 3.197, 3.174, 3.153)  # fmt: skip


@dataclass(frozen=True)
class MeasuredGain:
    """A measured gain as a factor (step time before / after), with the 95 % interval from `low` to `high`.

    `pairs` is the number of pairs of blocks. `verdict` is "faster", "slower", "no difference" or "unknown".
    """

    gain: float
    low: float
    high: float
    pairs: int
    verdict: str

    @property
    def is_known(self) -> bool:
        """True if there is a verdict, so that no more pairs are needed."""
        return self.verdict != "unknown"


def measured_gain(before_ns: Sequence[float], after_ns: Sequence[float]) -> MeasuredGain:
    """Returns the gain of a change from mean step times in ns: `before_ns` without and `after_ns` with the change.

    Elements with the same index are a pair, which was measured at about the same time. At least one pair is required.
    """
    ratios = [math.log(before / after) for before, after in zip(before_ns, after_ns, strict=False)]
    count, mean = len(ratios), fmean(ratios)
    if count < MIN_PAIRS:
        return MeasuredGain(math.exp(mean), 0.0, math.inf, count, "unknown")
    error = stdev(ratios) / math.sqrt(count)
    wide, narrow, equal = (table[min(count - 1, len(table)) - 1] * error for table in (T995, T95, T90))
    if abs(mean) > max(wide, math.log1p(LEAST)):
        verdict = "faster" if mean > 0 else "slower"
    elif abs(mean) + equal < math.log1p(NO_DIFFERENCE):
        verdict = "no difference"
    else:
        verdict = "unknown"
    reach = math.hypot(narrow, NORMAL95 * BETWEEN_TRIALS)
    return MeasuredGain(math.exp(mean), math.exp(mean - reach), math.exp(mean + reach), count, verdict)


def can_become_known(before_ns: Sequence[float], after_ns: Sequence[float], pairs: int) -> bool:
    """Returns False if the gain would still be unknown with `pairs` pairs, even if the spread of all pairs were only
    half of the present spread. The other arguments are as in `measured_gain`."""
    ratios = [math.log(before / after) for before, after in zip(before_ns, after_ns, strict=False)]
    if len(ratios) < LOOK_AHEAD:
        return True
    error = stdev(ratios) / 2 / math.sqrt(pairs)
    wide, equal = (table[min(pairs - 1, len(table)) - 1] * error for table in (T995, T90))
    return abs(fmean(ratios)) > wide or equal < math.log1p(NO_DIFFERENCE)


@dataclass(frozen=True)
class LossAgreement:
    """How much the losses of two variants differ.

    `difference` is the mean difference between the two variants, and `noise` the largest mean difference between two
    blocks of one variant. Both are relative to the mean size of the losses. `steps` is the number of compared steps.
    """

    difference: float
    noise: float
    steps: int

    @property
    def agrees(self) -> bool:
        """True if the difference is at most TOLERANCE (it can be due to rounding) or at most three times `noise`."""
        return self.difference <= max(TOLERANCE, 3 * self.noise)


TOLERANCE = 1e-3
"""Relative difference of the losses in the first steps that can be caused by another order of floating-point sums."""
COMPARED_LOSSES = 20


def loss_agreement(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> LossAgreement | None:
    """Compares the losses of the first steps. `before` and `after` have for each block its losses, without and with the
    change. None if there are fewer than two losses in a block, or if a loss is not finite."""
    first = [losses[:COMPARED_LOSSES] for losses in (*before, *after)]
    steps = min((len(losses) for losses in first), default=0)
    if steps < 2 or not before or not after or not all(math.isfinite(value) for losses in first for value in losses):
        return None
    repeats = [_difference(before[0], other, steps) for other in before[1:]]
    repeats += [_difference(after[0], other, steps) for other in after[1:]]
    return LossAgreement(_difference(before[0], after[0], steps), max(repeats, default=0.0), steps)


def _difference(one: Sequence[float], other: Sequence[float], steps: int) -> float:
    """Returns the mean absolute difference of two series of losses over the first `steps` steps, relative to the mean
    absolute value of the losses."""
    size = fmean(abs(value) for value in (*one[:steps], *other[:steps])) or 1.0
    return fmean(abs(a - b) for a, b in zip(one[:steps], other[:steps], strict=True)) / size
