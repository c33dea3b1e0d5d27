"""A wait of all ranks that is not recorded becomes a barrier; what only looks like one does not."""

import numpy as np
import pytest
from helpers.simulated_jobs import context_of
from simulate.jobs.as_summaries import summaries_of
from simulate.jobs.execution import execute
from simulate.jobs.program import Comm, Start, Wait, Work
from simulate.jobs.topologies import TOPOLOGIES, Faults, Shape

from tb_bottleneck.jobs.culprits import culprits_of
from tb_bottleneck.jobs.pairing.unrecorded_barriers import is_barrier

LAST = frozenset({6, 7})


def pipeline(*, hidden: bool, faults: Faults | None = None, after: float = 1.0):
    """Returns the timelines of 8 ranks in 4 stages whose norm of all gradients is a collective of all ranks, which is
    recorded, or is part of the kernel before it. `after` is a factor of the work of the last stage."""
    job = TOPOLOGIES["pipeline"](Shape(ranks=8, steps=6), faults or Faults(stage={3: 1.5 * after}, microbatches=8))
    marks = [[i for i, item in enumerate(program) if type(item).__name__ == "Mark"][1:] for program in job.programs]
    norms = [Comm("allreduce", "0", tuple(range(8)), 4, 20_000.0, lane=40) for _ in marks[0]]
    for program, places in zip(job.programs, marks, strict=True):
        for norm, place in reversed(list(zip(norms, places, strict=True))):
            program[place:place] = [Start(norm), Wait(norm), Work("device", 100_000.0)]
    lines = execute(job)
    for line in lines if hidden else []:
        gone = {id(row) for row in line.rows if any(row.comm is norm for norm in norms)}
        spans = [(begin, end) for begin, end, row in line.waits if id(row) in gone]
        line.rows = [row for row in line.rows if id(row) not in gone]
        line.waits = [wait for wait in line.waits if id(wait[2]) not in gone]
        line.work += [(begin, end, Work("device", end - begin), _step(line, begin)) for begin, end in spans]
    return job, lines


def _step(line, time):
    return max(number for number, begin in line.marks if begin <= time)


def context(**options):
    return context_of(summaries_of(*pipeline(**options)))


@pytest.fixture(scope="module")
def hidden():
    return context(hidden=True)


def test_the_wait_is_a_barrier_and_no_work(hidden):
    barriers = is_barrier(hidden.job)
    assert (np.bincount(hidden.job.rows.rank[barriers]) == 5).all(), "one in each step but the last"
    assert hidden.error < 0.005


def test_the_gain_is_that_of_the_recorded_collective(hidden):
    (expected,), (found,) = (culprits_of(each).culprits for each in (context(hidden=False), hidden))
    assert found.candidate.cause == expected.candidate.cause == "stage_imbalance"
    assert set(found.candidate.ranks.tolist()) == LAST
    assert found.gain.expected == pytest.approx(expected.gain.expected, rel=0.05), "the last wait stays work"


@pytest.mark.parametrize("topology", list(TOPOLOGIES))
@pytest.mark.parametrize(
    "faults",
    [Faults(), Faults(host={5: 0.5}), Faults(input={5: 0.5}), Faults(data=0.2)],
    ids=["well", "host", "input", "data"],
)
def test_recorded_collectives_explain_all_waits(topology, faults):
    job = TOPOLOGIES[topology](Shape(ranks=32 if topology == "megatron" else 8), faults)
    assert not is_barrier(context_of(summaries_of(job, execute(job))).job).any()
