"""Which candidates hold the job up: those whose fix makes the replayed job faster."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tb_bottleneck.jobs.causes.candidate import Candidate, bounded_share, fixed
from tb_bottleneck.jobs.causes.imbalance import imbalance
from tb_bottleneck.jobs.causes.links import exposed_collectives, pipeline_bubble, slow_links
from tb_bottleneck.jobs.causes.pauses import pauses
from tb_bottleneck.jobs.causes.slow_ranks import slow_ranks
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.gain_bounds import Intervals
from tb_bottleneck.jobs.scenarios import Changed
from tb_bottleneck.replay.gain import Gain

# Fixes are applied in this order. Collections of garbage are moved after the other pauses were removed.
FINDERS = (slow_ranks, pauses, imbalance, slow_links, exposed_collectives, pipeline_bubble)
SPREADING = ("data_imbalance", "expert_imbalance")
# A cause is named if it costs this share of the step, alone or beside the others: less is within the noise of steps.
MIN_COST = 0.03


@dataclass(frozen=True, eq=False)
class Culprit:
    """A cause, and the gain of its fix."""

    candidate: Candidate
    gain: Gain

    @property
    def cost_share(self) -> float:
        """Share of the job's time."""
        return 1 - 1 / self.gain.expected


@dataclass(frozen=True)
class Verdict:
    """The culprits by expected gain, and the gain of all fixes together."""

    culprits: tuple[Culprit, ...]
    gain: Gain


def culprits_of(context: JobContext) -> Verdict:
    """Returns the culprits of a job."""
    candidates = merged([candidate for find in FINDERS for candidate in find(context)])
    base = context.replay.length
    together = _length(context, candidates)
    intervals, found = Intervals(context, candidates), []
    for candidate in candidates:
        alone = _length(context, [candidate])
        without = _length(context, [other for other in candidates if other is not candidate])
        if max(base / alone, without / together) >= 1 / (1 - MIN_COST):
            found.append(Culprit(candidate, intervals.of([candidate])))
    whole = intervals.of([culprit.candidate for culprit in found])  # in the order of FINDERS
    found.sort(key=lambda culprit: (-culprit.gain.expected, culprit.candidate.cause, culprit.candidate.ranks.tolist()))
    return Verdict(tuple(found), whole)


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


def _length(context: JobContext, candidates: Sequence[Candidate]) -> float:
    """Returns the length of the job with these fixes. A bound that was not simulated scales the result."""
    return fixed(context, candidates).length(context) * bounded_share(context, candidates)
