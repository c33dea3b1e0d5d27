"""Which candidates hold the job up: those whose fix makes the replayed job faster."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.jobs.causes.candidate import Candidate, Fix
from tb_bottleneck.jobs.causes.imbalance import imbalance
from tb_bottleneck.jobs.causes.links import exposed_collectives, pipeline_bubble, slow_links
from tb_bottleneck.jobs.causes.pauses import pauses
from tb_bottleneck.jobs.causes.slow_ranks import slow_ranks
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.scenarios import Changed, unchanged
from tb_bottleneck.replay.deviations import RUN_TO_RUN_NOISE

# Fixes are applied in this order. Collections of garbage are moved after the other pauses were removed.
FINDERS = (slow_ranks, pauses, imbalance, slow_links, exposed_collectives, pipeline_bubble)
SPREADING = ("data_imbalance", "expert_imbalance")
# A cause is named if it costs this share of the step, alone or beside the others: less is within the noise of steps.
MIN_COST = 0.03
# Bounds of 95 % of a normal distribution.
CONFIDENCE = 1.96


@dataclass(frozen=True, eq=False)
class Culprit:
    """A cause, and the factor by which the job becomes faster: expected, low, high."""

    candidate: Candidate
    expected: float
    low: float
    high: float

    @property
    def cost_share(self) -> float:
        """Share of the job's time."""
        return 1 - 1 / self.expected


@dataclass(frozen=True)
class Verdict:
    """The culprits by expected gain, and the gain of all fixes together."""

    culprits: tuple[Culprit, ...]
    expected_all: float
    low_all: float
    high_all: float


def culprits_of(context: JobContext) -> Verdict:
    """Returns the culprits of a job."""
    candidates = merged([candidate for find in FINDERS for candidate in find(context)])
    base = context.replay.length
    together = _length(context, candidates)
    noise, found = _noise(context, candidates), []
    for candidate in candidates:
        alone = _length(context, [candidate])
        without = _length(context, [other for other in candidates if other is not candidate])
        if max(base / alone, without / together) >= 1 / (1 - MIN_COST):
            found.append(_culprit(context, candidate, base, alone, noise))
    whole = base / _length(context, [culprit.candidate for culprit in found])  # in the order of FINDERS
    found.sort(key=lambda culprit: (-culprit.expected, culprit.candidate.cause, culprit.candidate.ranks.tolist()))
    return Verdict(tuple(found), whole, max(whole / noise, 1.0), whole * noise)


def merged(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Returns the candidates with those of the same cause and host as one.

    Its fix is all of theirs; of causes that spread work evenly it is the first one, which already spreads all of it.
    """
    by_cause: dict[tuple[str, int], list[Candidate]] = {}
    for candidate in candidates:
        by_cause.setdefault((candidate.cause, candidate.host), []).append(candidate)
    return [same[0] if len(same) == 1 else _one(same) for same in by_cause.values()]


def _one(same: Sequence[Candidate]) -> Candidate:
    fixes = [candidate.fix for candidate in same if candidate.fix is not None]
    fixes = fixes[:1] if same[0].cause in SPREADING else fixes

    def fix(changed: Changed, context: JobContext) -> Changed:
        for each in fixes:
            changed = each(changed, context)
        return changed

    facts = {name: value for candidate in reversed(same) for name, value in candidate.facts.items()}
    ranks = np.unique(np.concatenate([candidate.ranks for candidate in same]))
    return Candidate(same[0].cause, ranks, fix, facts, host=same[0].host)


def _noise(context: JobContext, candidates: Sequence[Candidate]) -> float:
    """Returns the factor between a gain and its bounds: the noise of runs, and the error of the mean of few steps.

    Steps that still differ after all fixes differ by chance, as on a machine whose cores other programs use. Two runs
    are compared, each with such an error.
    """
    changed, points, table = _fixed(context, candidates), context.graph.points, context.own
    time = changed.result(context).node[: len(points)]
    ends = np.full(table.own.shape[1], -np.inf)
    np.maximum.at(ends, table.step, time)
    steps = np.diff(ends[np.isfinite(ends)])
    if not table.by_step or len(steps) < 2 or steps.mean() <= 0:
        return 1 + RUN_TO_RUN_NOISE
    error = float(np.std(steps, ddof=1) / np.sqrt(len(steps)) / steps.mean())
    return 1 + float(np.hypot(RUN_TO_RUN_NOISE, CONFIDENCE * np.sqrt(2) * error))


def _culprit(context: JobContext, candidate: Candidate, base: float, alone: float, noise: float) -> Culprit:
    expected = max(base / alone, 1.0)
    low, high = (base / _after(context, fix, alone) for fix in (candidate.low, candidate.high))
    return Culprit(candidate, expected, max(min(low, expected) / noise, 1.0), max(high, expected) * noise)


def _after(context: JobContext, fix: Fix | None, alone: float) -> float:
    return fix(unchanged(context), context).length(context) if fix is not None else alone


def _length(context: JobContext, candidates: Sequence[Candidate]) -> float:
    """Returns the length of the job with these fixes. A bound that was not simulated scales the result."""
    changed, scale = _fixed(context, candidates), 1.0
    for candidate in candidates:
        scale *= candidate.bound / context.replay.length if candidate.bound is not None else 1.0
    return changed.length(context) * scale


def _fixed(context: JobContext, candidates: Sequence[Candidate]) -> Changed:
    changed = unchanged(context)
    for candidate in candidates:
        changed = candidate.fix(changed, context) if candidate.fix is not None else changed
    return changed
