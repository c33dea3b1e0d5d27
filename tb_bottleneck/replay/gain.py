"""Gains of fixes with their 90 % intervals.

An interval combines independent sources of error, each with its 5 % and 95 % quantiles:

- the fix: the low and the high estimate of its scenario. A fix may also have only a part of its effect
  (`gain_in_part`). The fast steps of the run limit the gain of a fix that changes only some steps (`shortest_window`).
- the profiler: the slowest and the fastest plausible host without the profiler (host_scale.py).
- the host of the next run, which is faster or slower than the host of this run (HOST_DRIFT).
- the sample: a problem that was recorded in one step only may be rare in the run (LEAST_RATE).
- everything else in the next run (RUN_TO_RUN_NOISE).

The deviations of the gain are logarithms. Deviations of independent sources add up by their squares (JCGM 100:2008,
5.1.2), separately below and above the expected gain.
"""

from collections.abc import Iterable, Mapping
from math import exp, hypot, log, sqrt

import numpy as np

from tb_bottleneck.base.deviations import HOST_DRIFTS, QUANTILE, RUN_TO_RUN_NOISE
from tb_bottleneck.base.measure import Record
from tb_bottleneck.measures.trace.window_rows import launches_without_work
from tb_bottleneck.measures.unaffected_steps import fast_step
from tb_bottleneck.replay.host_scale import HostScale, with_host_scale
from tb_bottleneck.replay.modified_graph import Estimate, ModifiedGraph, on_host
from tb_bottleneck.replay.scenario import Scenario


def shortest_window(before: ModifiedGraph, after: ModifiedGraph) -> float:
    """Returns a lower limit (ns) of the window after a fix, from the recorded steps that the problem does not affect.

    `before` is the graph without the fix, `after` the graph with the largest plausible effect of the fix. A step is
    unaffected if its times in both graphs are nearly equal. A fix cannot make the mean step shorter than the 10th
    percentile of the unaffected steps (measures/unaffected_steps.py). Returns 0 if there is no limit, for example
    because the fix shortens all steps.
    """
    steps = before.simulated_steps()
    return fast_step(steps, steps - after.simulated_steps()) * len(steps)


# The standard deviation of (real saving / predicted saving), for fixes that save little: 0.22 for 24 real changes
# (GAINS.md). A fix that saves most of the step changes what most of the step does, and less can be left out: for the 10
# of 32 changes with a predicted gain above 2, the ratio was 0.95 to 1.20 (GAINS.md, and trainings on an H100). The
# deviation is therefore assumed to fall with the square root of the step time that is left.
SAVING_DEVIATION = 0.25

# With one occurrence in a recording, the lower 5 % bound of its rate / the recorded rate: the exact limit for a Poisson
# count of 1, -log(0.95) (Garwood 1936). The upper bound, 4.7, is not used: users record where they see a problem.
LEAST_RATE = 0.0513
# A problem counts as recorded in a single step if this share of the time that its fix saves is in one step. Our own
# limit.
IN_ONE_STEP = 0.9

SMALLEST_GAIN = 1e-9  # above 0, because gains are used as logarithms
MOST_LOST = 0.5  # with a larger share of lost kernels, a recording shows nothing of the device


class Gain(Record, frozen=True):
    """The gain of one or more fixes: step time without them / step time with them.

    `low` and `high` are the bounds of the 90 % interval around `expected`. `main_error` is the source of error that
    widens the interval most, as in `errors_of`.
    """

    expected: float
    low: float
    high: float
    main_error: str = "fix"


class Variants(Record, frozen=True, eq=False):
    """Variants of the graph of one recording, all with the same fixes.

    `expected` has the expected effect of the fixes and the expected profiler overhead. `fix` are the graphs with the
    low and the high effect of the fixes; `profiler` are the graphs with the fastest and the slowest plausible host
    without the profiler. These are the 5 % and 95 % quantiles of the two sources of error.
    """

    expected: ModifiedGraph
    fix: tuple[ModifiedGraph, ModifiedGraph]
    profiler: tuple[ModifiedGraph, ModifiedGraph]

    def with_fix(self, scenario: Scenario) -> "Variants | None":
        """Returns the variants with the fix `scenario` added; None if the fix cannot be simulated on one of the
        graphs."""
        expected = scenario.apply(self.expected, Estimate.EXPECTED)
        profiler = [
            expected if graph is self.expected else scenario.apply(graph, Estimate.EXPECTED) for graph in self.profiler
        ]
        low, high = scenario.apply(self.fix[0], Estimate.LOW), scenario.apply(self.fix[1], Estimate.HIGH)
        if expected is None or low is None or high is None or profiler[0] is None or profiler[1] is None:
            return None
        return Variants(expected, (low, high), (profiler[0], profiler[1]))


def without_fixes(graph: ModifiedGraph, host_scale: HostScale) -> Variants:
    """Returns the variants of the recorded `graph` without fixes. Dispatch times are multiplied by the expected, the
    least and the largest scale in `host_scale`, which estimates the host without the profiler."""
    least, expected, most = (
        with_host_scale(graph, scale) for scale in (host_scale.least, host_scale.expected, host_scale.most)
    )
    return Variants(expected, (expected, expected), (least, most))


def gain_of(before: Variants, after: Variants) -> Gain:
    """Returns the gain of the fixes that `after` has and `before` lacks. All three values are at least 1, because users
    revert a fix that slows training."""
    gain = _ratio(before.expected, after.expected, _shortest(before, after)) / _possible_excess(before, after)
    errors = errors_of(before, after)
    found = with_bounds(gain, errors)
    main_error = max(errors, key=lambda source: sum(errors[source]))
    expected, low, high = (max(ratio, 1.0) for ratio in (found.expected, found.low, found.high))
    return Gain(expected, low, high, main_error)


def _possible_excess(before: Variants, after: Variants) -> float:
    """Returns by how much the gain of the steps may exceed the true one, because steps or kernels are missing; 1 if
    none are.

    Of damaged steps, which were left out: mean of the other steps / its lower 95 % limit, from their deviation. Of lost
    kernels: launches / those with a kernel, since the device may work in as much of the remaining time."""
    recording = before.expected.base.recording
    gains = before.expected.simulated_steps() / np.maximum(after.expected.simulated_steps(), 1.0)
    excess = 1 / (1 - min(launches_without_work(recording.trace, recording.steps), MOST_LOST))
    if not recording.steps.damaged or len(gains) < 2:
        return excess
    return excess * exp(QUANTILE * float(np.std(np.log(np.maximum(gains, SMALLEST_GAIN)), ddof=1)) / sqrt(len(gains)))


def errors_of(before: Variants, after: Variants) -> dict[str, tuple[float, float]]:
    """Returns for each source of error how far the gain may be (below, above) the expected gain.

    `before` and `after` are the graphs without and with the fix. Each value is a non-negative natural logarithm of
    (one gain / the other). The keys are "fix", "profiler", "host", "sample" and "noise" (see the module docstring).
    """
    shortest = _shortest(before, after)
    gain = _ratio(before.expected, after.expected, shortest)
    gains = {
        "fix": [gain_in_part(gain), *(_ratio(before.expected, graph, shortest) for graph in after.fix)],
        "profiler": [
            _ratio(start, graph, shortest * start.window() / max(before.expected.window(), 1.0))
            for start, graph in zip(before.profiler, after.profiler, strict=True)
        ],
        "host": [_on_next_host(before, after, factor, shortest) for factor in HOST_DRIFTS],
        "sample": [_at_least_rate(gain, before, after)],
        "noise": [gain * exp(RUN_TO_RUN_NOISE), gain / exp(RUN_TO_RUN_NOISE)],
    }
    return {source: deviations(gain, ratios) for source, ratios in gains.items()}


def gain_in_part(gain: float) -> float:
    """Returns the gain at the 5 % quantile of the share of the expected saving that a fix brings (SAVING_DEVIATION).

    `gain` is the expected gain, old step time / new step time. The saved share of the step time is 1 - 1 / `gain`.
    """
    part = 1 - QUANTILE * SAVING_DEVIATION / sqrt(max(gain, 1.0))
    return 1 / (1 - part + part / gain)


def _at_least_rate(gain: float, before: Variants, after: Variants) -> float:
    """Returns a lower bound of the gain in the whole run, for a problem that was recorded in a single step.

    Such a problem may occur in the run only at LEAST_RATE times its recorded rate. If the problem was recorded in
    several steps, returns `gain`, the gain in the recorded steps.
    """
    saved = before.expected.simulated_steps() - after.expected.simulated_steps()
    once = len(saved) > 1 and saved.max() >= IN_ONE_STEP * saved.clip(min=0).sum()
    return 1 + LEAST_RATE * (gain - 1) if once and gain > 1 else gain


def _on_next_host(before: Variants, after: Variants, factor: float, shortest: float) -> float:
    """Returns the gain if the host of the next run takes `factor` times as long as the host of this run. `shortest` is
    the lower limit of the window after the fix, in ns."""
    return _ratio(before.expected, on_host(after.expected, factor), shortest * min(factor, 1.0))


def deviations(gain: float, gains: Iterable[float]) -> tuple[float, float]:
    """Returns how far `gains` are at most (below, above) `gain`, as absolute values of log(other gain / `gain`)."""
    sides = [log(max(other, SMALLEST_GAIN) / max(gain, SMALLEST_GAIN)) for other in gains]
    return max(0.0, -min(sides, default=0.0)), max(0.0, *sides, 0.0)


def with_bounds(gain: float, errors: Mapping[str, tuple[float, float]]) -> Gain:
    """Returns `gain` with its 90 % interval. `errors` has the deviations (below, above) of each source of error, as
    non-negative natural logarithms. Independent deviations add up by their squares."""
    below, above = (hypot(*sides) for sides in zip(*errors.values(), strict=True))
    return Gain(gain, gain * exp(-below), gain * exp(above))


def _shortest(before: Variants, after: Variants) -> float:
    """Returns the lower limit of the window after the fix, in ns (see shortest_window)."""
    return shortest_window(before.expected, after.fix[1])


def _ratio(before: ModifiedGraph, after: ModifiedGraph, shortest: float = 1.0) -> float:
    """Returns window of `before` / window of `after`, where the window of `after` counts as at least `shortest` ns."""
    return max(before.window(), 1.0) / max(after.window(), shortest, 1.0)
