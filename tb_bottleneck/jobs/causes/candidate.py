"""A possible cause: who, why, and the change of the job that would fix it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.scenarios import Changed, unchanged
from tb_bottleneck.trace.table import Ints

Fix = Callable[[Changed, JobContext], Changed]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A cause with the positions of its ranks. `facts` are figures for its evidence, by name.

    `low` and `high` are the least and the most that the fix may do; without them, the other errors of a gain count.
    `bound` is the length of the job after the fix in ns, for causes whose fix is not simulated.
    """

    cause: str
    ranks: Ints
    fix: Fix | None
    facts: Mapping[str, float | str] = field(default_factory=dict)
    low: Fix | None = None
    high: Fix | None = None
    host: int = -1
    bound: float | None = None


def fixed(context: JobContext, candidates: Sequence[Candidate]) -> Changed:
    """Returns the job with these fixes, in this order."""
    changed = unchanged(context)
    for candidate in candidates:
        changed = candidate.fix(changed, context) if candidate.fix is not None else changed
    return changed


def bounded_share(context: JobContext, candidates: Sequence[Candidate]) -> float:
    """Returns the share of the job's length that remains after the fixes that are not simulated."""
    share = 1.0
    for candidate in candidates:
        share *= candidate.bound / context.replay.length if candidate.bound is not None else 1.0
    return share
