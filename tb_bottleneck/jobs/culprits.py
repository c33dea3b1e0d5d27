"""Which candidates hold the job up: those whose fix makes the replayed job faster."""

from collections.abc import Sequence
from dataclasses import dataclass

from tb_bottleneck.jobs.causes.candidate import Candidate, Fix
from tb_bottleneck.jobs.causes.imbalance import imbalance
from tb_bottleneck.jobs.causes.links import exposed_collectives, pipeline_bubble, slow_links
from tb_bottleneck.jobs.causes.pauses import pauses
from tb_bottleneck.jobs.causes.slow_ranks import slow_ranks
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.scenarios import unchanged
from tb_bottleneck.replay.deviations import RUN_TO_RUN_NOISE

FINDERS = (slow_ranks, pauses, imbalance, slow_links, exposed_collectives, pipeline_bubble)
# A cause is named if it costs this share of the step, alone or beside the others: less is within the noise of steps.
MIN_COST = 0.03


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
    candidates = [candidate for find in FINDERS for candidate in find(context)]
    base = context.replay.length
    together = _length(context, candidates)
    found = []
    for candidate in candidates:
        alone = _length(context, [candidate])
        without = _length(context, [other for other in candidates if other is not candidate])
        if max(base / alone, without / together) >= 1 / (1 - MIN_COST):
            found.append(_culprit(context, candidate, base, alone))
    found.sort(key=lambda culprit: (-culprit.expected, culprit.candidate.cause, culprit.candidate.ranks.tolist()))
    whole = base / _length(context, [culprit.candidate for culprit in found])
    return Verdict(tuple(found), whole, max(whole / RUN_TO_RUN_NOISE_FACTOR, 1.0), whole * RUN_TO_RUN_NOISE_FACTOR)


RUN_TO_RUN_NOISE_FACTOR = 1 + RUN_TO_RUN_NOISE


def _culprit(context: JobContext, candidate: Candidate, base: float, alone: float) -> Culprit:
    expected = max(base / alone, 1.0)
    low, high = (base / _after(context, fix, alone) for fix in (candidate.low, candidate.high))
    return Culprit(
        candidate,
        expected,
        max(min(low, expected) / RUN_TO_RUN_NOISE_FACTOR, 1.0),
        max(high, expected) * RUN_TO_RUN_NOISE_FACTOR,
    )


def _after(context: JobContext, fix: Fix | None, alone: float) -> float:
    return fix(unchanged(context), context).length(context) if fix is not None else alone


def _length(context: JobContext, candidates: Sequence[Candidate]) -> float:
    """Returns the length of the job with these fixes. A bound that was not simulated scales the result."""
    changed = unchanged(context)
    for candidate in candidates:
        changed = candidate.fix(changed, context) if candidate.fix is not None else changed
    scale = 1.0
    for candidate in candidates:
        scale *= candidate.bound / context.replay.length if candidate.bound is not None else 1.0
    return changed.length(context) * scale
