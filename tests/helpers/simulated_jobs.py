"""Jobs of the simulator as the analysis sees them."""

from dataclasses import replace
from functools import cache

import numpy as np
from simulate.jobs.as_summaries import summaries_of
from simulate.jobs.cases import Case
from simulate.jobs.cases import planted as planted_case
from simulate.jobs.execution import execute
from simulate.jobs.topologies import TOPOLOGIES, Faults, Shape

from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.summary.rank_summary import RankSummary


def simulated(
    topology: str = "data", faults: Faults | None = None, *, ranks: int = 8, steps: int = 5, seed: int = 1, **job: bool
) -> list[RankSummary]:
    """Returns the summaries of a job; further arguments set attributes of the job."""
    program = TOPOLOGIES[topology](Shape(ranks=ranks, steps=steps, seed=seed), faults or Faults())
    for name, value in job.items():
        setattr(program, name, value)
    return summaries_of(program, execute(program))


def of_case(case: Case) -> list[RankSummary]:
    """Returns the summaries of a case."""
    program = TOPOLOGIES[case.topology](case.shape, case.faults)
    return summaries_of(program, execute(program))


@cache
def planted(cause: str, seed: int) -> tuple[Case, list[RankSummary]]:
    """Returns a job with a planted cause and its summaries."""
    case = planted_case(cause, seed)
    return case, of_case(case)


def context_of(summaries: list[RankSummary]) -> JobContext:
    """Returns the job of these ranks."""
    return JobContext.of(summaries)


def without_rows(summary: RankSummary, lost: list[int]) -> RankSummary:
    """Returns a summary that lost some communications."""
    keep = np.ones(len(summary.communications), np.bool_)
    keep[lost] = False
    row = np.cumsum(keep) - 1
    points = summary.points.take(keep[summary.points.communication])
    return replace(
        summary,
        communications=summary.communications.take(keep),
        points=replace(points, communication=row[points.communication]),
    )
