"""The replay reproduces the recorded job, and predicts it without what slows it down."""

import numpy as np
import pytest
from helpers.simulated_jobs import context_of, simulated
from simulate.jobs.topologies import Faults

from tb_bottleneck.jobs.culprits import culprits_of
from tb_bottleneck.jobs.replay.job_graph import cyclic_pairs, job_graph
from tb_bottleneck.jobs.scenarios import unchanged
from tb_bottleneck.jobs.summary.rank_summary import Own

TOPOLOGIES = ["data", "sharded", "tensor", "experts", "pipeline"]


def length(topology, faults, **shape):
    context = context_of(simulated(topology, faults, **shape))
    return context.recorded_ns, context


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("faults", [Faults(), Faults(host={3: 0.5}), Faults(data=0.2)], ids=["even", "slow", "data"])
def test_the_unmodified_job_takes_as_long_as_recorded(topology, faults):
    assert context_of(simulated(topology, faults)).error < 0.001


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_without_a_straggler_the_job_is_as_fast_as_its_other_ranks_allow(topology):
    slow, context = length(topology, Faults(host={3: 0.5}))
    fast, _ = length(topology, Faults())
    (culprit,) = culprits_of(context).culprits
    assert (culprit.candidate.cause, culprit.candidate.ranks.tolist()) == ("slow_rank", [3])
    assert culprit.gain.expected == pytest.approx(slow / fast, rel=0.02)
    assert culprit.gain.low <= slow / fast <= culprit.gain.high


def test_of_two_ranks_the_slow_one_becomes_like_the_fast_one():
    """A median over both ranks would contain the straggler."""
    slow, context = length("data", Faults(host={1: 3.0}), ranks=2)
    fast, _ = length("data", Faults(), ranks=2)
    assert slow / fast > 3
    (culprit,) = culprits_of(context).culprits
    assert culprit.gain.expected == pytest.approx(slow / fast, rel=0.02)


def test_several_stragglers_are_fixed_together():
    slow, context = length("data", Faults(host={1: 0.5, 2: 0.5, 5: 0.6}))
    fast, _ = length("data", Faults())
    (culprit,) = culprits_of(context).culprits
    assert culprit.candidate.ranks.tolist() == [1, 2, 5]
    assert culprit.gain.expected == pytest.approx(slow / fast, rel=0.02)


def test_a_rank_that_did_not_wait_would_wait_if_it_were_faster():
    """The last rank finds each collective done when it looks, if the transfer is hidden by its own work."""
    context = context_of(simulated("sharded", Faults(host={3: 0.5})))
    assert context.graph.points.added.any()
    assert context.error < 0.001


def test_pairs_that_wait_for_each_other_in_a_circle_are_found():
    summaries = simulated("experts", steps=2)
    context = context_of(summaries)
    pairs = context.pairs
    swapped = pairs.pair.copy()
    mine = np.flatnonzero((context.job.rows.rank == 0) & (pairs.pair >= 0))
    swapped[mine[[3, 6]]] = pairs.pair[mine[[6, 3]]]
    wrong = type(pairs)(swapped, pairs.count, pairs.level, 0, 0)
    graph = job_graph(context.job, wrong, context.clocks)
    assert cyclic_pairs(graph, wrong).any()
    assert not cyclic_pairs(context.graph, pairs).any()


def test_no_own_time_is_lost_or_made():
    context = context_of(simulated("sharded", Faults(data=0.2)))
    points = context.graph.points
    for position, summary in enumerate(context.job.summaries):
        mine = points.rank == position
        assert points.own[mine].sum() == pytest.approx(summary.own.sum())
    assert (unchanged(context).own >= 0).all()
    assert points.own.shape[1] == len(Own)
