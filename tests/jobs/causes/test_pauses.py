"""Pauses of ranks: removed, or moved to common steps, without changing each other."""

import numpy as np
import pytest
from helpers.simulated_jobs import context_of, simulated
from simulate.jobs.as_summaries import summaries_of
from simulate.jobs.execution import execute
from simulate.jobs.topologies import TOPOLOGIES, Faults, Shape

from tb_bottleneck.jobs.causes.pauses import pauses
from tb_bottleneck.jobs.context import JobContext
from tb_bottleneck.jobs.culprits import culprits_of
from tb_bottleneck.jobs.scenarios import Changed, unchanged
from tb_bottleneck.jobs.summary.rank_summary import Own

# Collections in steps 4, 5 and 6 of three ranks; a checkpoint of rank 0 in steps 4 and 7.
COLLECTIONS = {(1, 4): 0.7, (2, 5): 0.7, (3, 6): 0.7}
PAUSES = {(0, 4): 1.5, (0, 7): 1.5}


def by_step(context: JobContext, changed: Changed) -> np.ndarray:
    """Returns the interruptions by rank and step, in units of the usual work of a step."""
    table = np.zeros(context.own.total.shape)
    np.add.at(table, (context.graph.points.rank, context.own.step), changed.own[:, Own.INTERRUPTION])
    return table / 40e6


def fixed(context: JobContext, causes: list[str]) -> np.ndarray:
    """Returns the interruptions after the fixes of these causes, in this order."""
    fixes = {candidate.cause: candidate.fix for candidate in pauses(context)}
    changed = unchanged(context)
    for cause in causes:
        changed = fixes[cause](changed, context)
    return by_step(context, changed)


def test_collections_move_to_one_step_and_checkpoints_stay():
    context = context_of(simulated(faults=Faults(pauses=PAUSES, collections=COLLECTIONS)))
    expected = np.zeros((8, 5))
    expected[[1, 2, 3], 2] = 0.7
    expected[0, [1, 4]] = 1.5
    assert fixed(context, ["unsynchronised_gc"]) == pytest.approx(expected, abs=1e-3)


def test_a_removed_checkpoint_does_not_come_back_with_the_collections():
    context = context_of(simulated(faults=Faults(pauses=PAUSES, collections=COLLECTIONS)))
    after = fixed(context, ["rank_interruption", "unsynchronised_gc"])
    assert not after[0].any()
    assert after[[1, 2, 3], 2] == pytest.approx(0.7, abs=1e-3)


def test_a_rank_without_its_checkpoints_still_collects():
    context = context_of(simulated(faults=Faults(pauses=PAUSES, collections={**COLLECTIONS, (0, 5): 0.7})))
    assert fixed(context, ["rank_interruption"])[0] == pytest.approx([0, 0, 0.7, 0, 0], abs=1e-3)


def test_the_gain_of_both_fixes_is_that_of_a_job_without_checkpoints_that_collects_at_once():
    planted = context_of(simulated(faults=Faults(pauses=PAUSES, collections=COLLECTIONS)))
    at_once = context_of(simulated(faults=Faults(collections={(rank, 5): 0.7 for rank in (1, 2, 3)})))
    verdict = culprits_of(planted)
    assert {culprit.candidate.cause for culprit in verdict.culprits} == {"rank_interruption", "unsynchronised_gc"}
    assert verdict.gain.expected == pytest.approx(planted.recorded_ns / at_once.recorded_ns, rel=0.02)


@pytest.mark.parametrize("topology", ["pipeline", "interleaved", "zero_bubble"])
@pytest.mark.parametrize(
    ("cause", "planted"),
    [
        ("rank_interruption", {"pauses": {(0, 5): 0.8}}),
        ("unsynchronised_gc", {"collections": {(0, 4): 0.6, (1, 5): 0.6, (2, 6): 0.6, (5, 7): 0.6}}),
    ],
)
def test_stages_without_a_recording_wait_for_pauses_as_well(topology, cause, planted):
    """Ranks 0 and 4 of 8 are recorded: the first and the third stage of one replica."""
    cases = {cause: planted, "healthy": {}}
    lengths = {}
    for name, faults in cases.items():
        job = TOPOLOGIES[topology](Shape(ranks=8, steps=5), Faults(**faults))
        lines = execute(job)
        lengths[name] = max(line.end for line in lines)
        summaries = [each for each in summaries_of(job, lines) if each.facts.rank % 4 == 0]
        if name == cause:
            (culprit,) = culprits_of(context_of(summaries)).culprits
    together = 0.6 * 40e6 if cause == "unsynchronised_gc" else 0.0
    assert culprit.candidate.cause == cause
    assert culprit.gain.expected == pytest.approx(lengths[cause] / (lengths["healthy"] + together), rel=0.03)
