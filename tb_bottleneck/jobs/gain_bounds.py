"""The 90 % intervals of the gains of a job's fixes.

They combine the errors of the gains of a single recording (replay/gain.py) with those that only a job has:

- the fix: the low and the high estimate of its candidate, and that it may take effect in part only (PARTIAL_EFFECT).
- the profiler: with it, dispatching may take up to MAX_HOST_SLOWDOWN times as long. On the CPU, dispatching cannot be
  separated from other work.
- the hosts of the next run, which are faster or slower than in this one (HOST_DRIFT).
- everything else in the next run (RUN_TO_RUN_NOISE), and the error of the mean of few steps, in both runs.
- the replay: the error of that of the unchanged job.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tb_bottleneck.jobs.causes.candidate import Candidate, bounded_share, fixed
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.scenarios import Changed, scaled, unchanged
from tb_bottleneck.jobs.summary.rank_summary import Own
from tb_bottleneck.regime import REGIMES, Regime
from tb_bottleneck.replay.deviations import HOST_DRIFTS, RUN_TO_RUN_NOISE
from tb_bottleneck.replay.gain import Gain, deviations, gain_in_part, with_bounds
from tb_bottleneck.replay.host_scale import MAX_HOST_SLOWDOWN
from tb_bottleneck.trace.table import Floats

# Bounds of 95 % of a normal distribution: those of 90 % of the t distribution of about seven steps.
CONFIDENCE = 1.96


class Intervals:
    """Gives the gains of a job their intervals. `candidates` are all that were found: steps that still differ without
    them differ by chance, as on a machine whose cores other programs use."""

    def __init__(self, context: JobContext, candidates: Sequence[Candidate]) -> None:
        self._context = context
        self._noise = float(np.hypot(RUN_TO_RUN_NOISE, CONFIDENCE * np.sqrt(2) * _step_error(context, candidates)))
        self._dispatch = _dispatch_without_profiler(context)
        self._unprofiled = scaled(unchanged(context), context, self._dispatch).length(context)

    def of(self, candidates: Sequence[Candidate]) -> Gain:
        """Returns the gain of these fixes together, with its interval; at least 1."""
        context = self._context
        after, share = fixed(context, candidates), bounded_share(context, candidates)
        base = context.replay.length

        def gain_with(changed: Changed, before: float = base) -> float:
            return before / (changed.length(context) * share)

        gain = gain_with(after)
        errors = {
            "fix": [gain_in_part(gain), *(gain_with(fixed(context, other)) for other in _estimates(candidates))],
            "profiler": [gain_with(scaled(after, context, self._dispatch), self._unprofiled)],
            "host": [gain_with(_on_next_hosts(after, context, factor)) for factor in HOST_DRIFTS],
        }
        sides = {source: deviations(gain, gains) for source, gains in errors.items()}
        either = {"noise": self._noise, "replay": float(np.log1p(context.error))}
        found = with_bounds(gain, sides | {source: (error, error) for source, error in either.items()})
        return Gain(*(max(ratio, 1.0) for ratio in (found.expected, found.low, found.high)))


def _estimates(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Returns the candidates with the least and with the most that their fixes may do, where these differ."""
    return [
        [replace(candidate, fix=getattr(candidate, side) or candidate.fix) for candidate in candidates]
        for side in ("low", "high")
        if any(getattr(candidate, side) is not None for candidate in candidates)
    ]


def _step_error(context: JobContext, candidates: Sequence[Candidate]) -> float:
    """Returns the relative standard error of the mean step without what was found; 0 with fewer than two steps."""
    points, table = context.graph.points, context.own
    time = fixed(context, candidates).result(context).node[: len(points)]
    ends = np.full(table.own.shape[1], -np.inf)
    np.maximum.at(ends, table.step, time)
    steps = np.diff(ends[np.isfinite(ends)])
    if not table.by_step or len(steps) < 2 or steps.mean() <= 0:
        return 0.0
    return float(np.std(steps, ddof=1) / np.sqrt(len(steps)) / steps.mean())


def _dispatch_without_profiler(context: JobContext) -> Floats:
    """Returns the least factors of own time without the profiler, by rank, step and kind: host time is dispatching as
    far as the accounts say."""
    table, factor = context.own, np.ones_like(context.own.own)
    launch = REGIMES.index(Regime.LAUNCH)
    for position, summary in enumerate(context.job.summaries):
        host = np.nansum(table.own[position, :, Own.HOST])
        if summary.facts.device and host > 0:
            share = min(float(summary.account[:, launch].sum()) / host, 1.0)
            factor[position, :, Own.HOST] = 1 - share * (1 - 1 / MAX_HOST_SLOWDOWN)
    return factor


def _on_next_hosts(changed: Changed, context: JobContext, factor: float) -> Changed:
    """Returns the job on hosts that take `factor` times as long for everything, loading included."""
    factors = np.full_like(context.own.own, factor)
    on_device = [bool(summary.facts.device) for summary in context.job.summaries]
    factors[on_device, :, Own.DEVICE] = 1.0
    return scaled(changed, context, factors)
