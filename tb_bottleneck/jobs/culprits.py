"""The culprits of a job, which are the candidate causes whose fix makes the replayed job faster, and their gains."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tb_bottleneck.base.deviations import HOST_DRIFTS, RUN_TO_RUN_NOISE
from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.jobs.causes.candidates import Candidate, bounded_share, fixed
from tb_bottleneck.jobs.causes.exposed_transfers import exposed_transfers
from tb_bottleneck.jobs.causes.imbalance import imbalance
from tb_bottleneck.jobs.causes.pauses import pauses
from tb_bottleneck.jobs.causes.pipelines import pipeline_bubble
from tb_bottleneck.jobs.causes.slow_links import slow_links
from tb_bottleneck.jobs.causes.slow_ranks import slow_ranks
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.scenarios import Changed, scaled, unchanged
from tb_bottleneck.jobs.summary.rank_summary import Own
from tb_bottleneck.replay.gain import Gain, deviations, gain_in_part, with_bounds
from tb_bottleneck.replay.host_scale import MAX_HOST_SLOWDOWN
from tb_bottleneck.trace.table import Floats

# Half width of an interval in standard errors: 95 % of a normal distribution, or 90 % of the t distribution for about
# seven steps.
CONFIDENCE = 1.96


class Intervals:
    """Computes the gains of fixes with their 90 % intervals.

    `candidates` are all candidate causes of the job. The differences between steps that remain in the replay after all
    fixes count as noise, for example from other programs on the same cores.

    The intervals combine the errors of the gains of a single recording (replay/gain.py) with those that only a job has:

    - the fix: its low and its high estimate (see Candidate), and the possibility that the fix takes effect only in part
      (gain_in_part).
    - the profiler: with the profiler, dispatching may take up to MAX_HOST_SLOWDOWN times as long. On the CPU,
      dispatching cannot be separated from other work.
    - the hosts of the next run, which are faster or slower than in this run (HOST_DRIFT).
    - everything else in the next run (RUN_TO_RUN_NOISE), and the error of the mean of few steps, in both runs.
    - the replay: the error of the replay of the unchanged job, and the share of communications that are left out
      because they contradict themselves.
    """

    def __init__(self, context: JobContext, candidates: Sequence[Candidate]) -> None:
        self._context = context
        self._noise = float(np.hypot(RUN_TO_RUN_NOISE, CONFIDENCE * np.sqrt(2) * _step_error(context, candidates)))
        self._dispatch = _dispatch_without_profiler(context)
        self._unprofiled = scaled(unchanged(context), context, self._dispatch).length(context)

    def of(self, candidates: Sequence[Candidate]) -> Gain:
        """Returns the gain of the fixes of all `candidates` together: length of the job without / with these fixes, and
        its 90 % interval. All values are at least 1."""
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
        either = {"noise": self._noise, "replay": float(np.log1p(context.error + context.wrong_share))}
        found = with_bounds(gain, sides | {source: (error, error) for source, error in either.items()})
        expected, low, high = (max(ratio, 1.0) for ratio in (found.expected, found.low, found.high))
        return Gain(expected, low, high)


def _estimates(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Returns up to two lists: the candidates with `low` as their fix, then the candidates with `high` as their fix.

    A candidate without `low` or `high` keeps its fix. A list is left out if no candidate has the estimate.
    """
    return [
        [replace(candidate, fix=getattr(candidate, side) or candidate.fix) for candidate in candidates]
        for side in ("low", "high")
        if any(getattr(candidate, side) is not None for candidate in candidates)
    ]


def _step_error(context: JobContext, candidates: Sequence[Candidate]) -> float:
    """Returns the standard error of the mean step time / the mean step time, in the replay with the fixes of all
    `candidates`. Returns 0 with fewer than three steps, or if the table of own times (time without waiting) has blocks
    of communications instead of steps."""
    points, table = context.graph.points, context.own
    time = fixed(context, candidates).result(context).node[: len(points)]
    ends = np.full(table.own.shape[1], -np.inf)
    np.maximum.at(ends, table.step, time)
    steps = np.diff(ends[np.isfinite(ends)])
    if not table.by_step or len(steps) < 2 or steps.mean() <= 0:
        return 0.0
    return float(np.std(steps, ddof=1) / np.sqrt(len(steps)) / steps.mean())


def _dispatch_without_profiler(context: JobContext) -> Floats:
    """Returns the smallest plausible factors by which own times (time without waiting) change without the profiler, of
    shape (ranks, steps, kinds).

    Only dispatching gets faster, by the factor MAX_HOST_SLOWDOWN. The share of dispatching in the host time of a rank
    is (time of the regime `launch` in its account / its host time); the account is the time per regime.
    """
    table, factor = context.own, np.ones_like(context.own.own)
    launch = REGIMES.index(Regime.LAUNCH)
    for position, summary in enumerate(context.job.summaries):
        host = np.nansum(table.own[position, :, Own.HOST])
        if summary.facts.device and host > 0:
            share = min(float(summary.account[:, launch].sum()) / host, 1.0)
            factor[position, :, Own.HOST] = 1 - share * (1 - 1 / MAX_HOST_SLOWDOWN)
    return factor


def _on_next_hosts(changed: Changed, context: JobContext, factor: float) -> Changed:
    """Returns the job on hosts that take `factor` times as long: all own time (time without waiting) is multiplied by
    `factor`, except device time on ranks with a device."""
    factors = np.full_like(context.own.own, factor)
    on_device = [bool(summary.facts.device) for summary in context.job.summaries]
    factors[on_device, :, Own.DEVICE] = 1.0
    return scaled(changed, context, factors)


# Fixes are applied in this order. Collections of garbage are moved after the other pauses were removed.
FINDERS = (slow_ranks, pauses, imbalance, slow_links, exposed_transfers, pipeline_bubble)
SPREADING = ("data_imbalance", "expert_imbalance")
# Smallest cost of a cause that is named, as a share of the step. A smaller cost is within the noise of steps.
MIN_COST = 0.03


@dataclass(frozen=True, eq=False)
class Culprit:
    """A cause that slows the job, and the gain of its fix alone (length of the job without / with the fix)."""

    candidate: Candidate
    gain: Gain

    @property
    def cost_share(self) -> float:
        """The share (0 to 1) of the time of the job that the fix saves."""
        return 1 - 1 / self.gain.expected


@dataclass(frozen=True)
class Verdict:
    """The culprits of a job, and the `gain` of their fixes together.

    Culprits whose fix is simulated come first, sorted by expected gain. `gain` covers only the simulated fixes; if no
    fix is simulated, it is the bound for all of them.
    """

    culprits: tuple[Culprit, ...]
    gain: Gain


def culprits_of(context: JobContext) -> Verdict:
    """Returns the culprits of a job: the causes that cost at least MIN_COST of its time, measured either by fixing only
    this cause, or by fixing all other causes."""
    candidates = merged([candidate for find in FINDERS for candidate in find(context)])
    base = context.replay.length
    together = _length(context, candidates)
    intervals, found = Intervals(context, candidates), []
    for candidate in candidates:
        alone = _length(context, [candidate])
        without = _length(context, [other for other in candidates if other is not candidate])
        if max(base / alone, without / together) >= 1 / (1 - MIN_COST):
            found.append(Culprit(candidate, intervals.of([candidate])))
    simulated = [culprit for culprit in found if culprit.candidate.bound is None]
    whole = intervals.of([culprit.candidate for culprit in simulated or found])  # in the order of FINDERS
    return Verdict(tuple(sorted(found, key=_rank)), whole)


def _rank(culprit: Culprit) -> tuple[bool, bool, float, str, list[int]]:
    """Returns the sorting key of a culprit. Culprits whose gain is only a bound come after those with simulated gains,
    because bounds are not forecasts. Too few microbatches come last, because they are planned and not a fault."""
    candidate, gain = culprit.candidate, culprit.gain.expected
    planned = candidate.cause == "pipeline_bubble"
    return candidate.bound is not None, planned, -gain, candidate.cause, candidate.ranks.tolist()


def merged(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Merges all candidates with the same cause and host into one candidate each.

    The fix of a merged candidate applies all simulated fixes in order. For causes whose fix spreads work evenly, only
    the first fix is applied, because it already spreads all work. A candidate that was merged from several has no low
    or high estimate and no bound.
    """
    by_cause: dict[tuple[str, int], list[Candidate]] = {}
    for candidate in candidates:
        by_cause.setdefault((candidate.cause, candidate.host), []).append(candidate)
    return [same[0] if len(same) == 1 else _one(same) for same in by_cause.values()]


def _one(same: Sequence[Candidate]) -> Candidate:
    """Returns one candidate for the candidates `same`, which have the same cause and host."""
    fixes = [candidate.fix for candidate in same if candidate.fix is not None]
    fixes = fixes[:1] if same[0].cause in SPREADING else fixes

    def fix(changed: Changed, context: JobContext) -> Changed:
        for each in fixes:
            changed = each(changed, context)
        return changed

    facts = {name: value for candidate in reversed(same) for name, value in candidate.facts.items()}
    ranks = np.unique(np.concatenate([candidate.ranks for candidate in same]))
    return Candidate(same[0].cause, ranks, fix, facts, host=same[0].host)


def _length(context: JobContext, candidates: Sequence[Candidate]) -> float:
    """Returns the length of the job in ns with the fixes of `candidates`. For fixes that are not simulated, the length
    is multiplied by bounded_share."""
    return fixed(context, candidates).length(context) * bounded_share(context, candidates)
