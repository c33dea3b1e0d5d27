"""A possible cause: who, why, and the change of the job that would fix it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.scenarios import Changed
from tb_bottleneck.trace.table import Ints

Fix = Callable[[Changed, JobContext], Changed]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A cause with the positions of its ranks. `facts` are figures for its evidence, by name.

    `low` and `high` are the least and the most that the fix may do; without them, the bounds are those of the noise.
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
