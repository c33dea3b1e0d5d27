"""Waiting goes back to the rank that caused it, over groups in which the last rank has waited itself."""

import numpy as np
import pytest
from helpers.simulated_jobs import context_of, simulated
from simulate.jobs.topologies import Faults

from tb_bottleneck.jobs.causes.candidates import origins
from tb_bottleneck.jobs.culprits import culprits_of

SLOW = 5


def waiting_of(context, ranks, pairs):
    """Returns the share of the waiting in some pairs that belongs to each of the ranks."""
    waits = np.bincount(context.pairs.pair, weights=context.wires.wait, minlength=context.pairs.count) * pairs
    return np.bincount(ranks, weights=waits, minlength=len(context.job.ranks)) / waits.sum()


def pairs_of_kind(context, kind):
    named = np.array(context.grid.kinds)[context.job.rows.group] == kind
    return np.bincount(context.pairs.pair, weights=named, minlength=context.pairs.count) > 0


@pytest.mark.parametrize(("topology", "ranks"), [("tensor", 8), ("pipeline", 8), ("megatron", 32)])
def test_in_data_parallel_groups_the_last_rank_may_be_a_victim(topology, ranks):
    """Ranks that share layers or a pipeline with the slow one arrive late too, each in a group of its own."""
    context = context_of(simulated(topology, Faults(host={SLOW: 0.5}), ranks=ranks))
    data = pairs_of_kind(context, "data")
    last = waiting_of(context, context.job.rows.rank[context.wires.last], data)
    origin = waiting_of(context, origins(context), data)
    assert last[SLOW] < 0.6
    assert origin[SLOW] > 0.9
    assert [(c.candidate.cause, c.candidate.ranks.tolist()) for c in culprits_of(context).culprits] == [
        ("slow_rank", [SLOW])
    ]


def test_in_one_group_the_last_rank_is_the_origin():
    context = context_of(simulated("data", Faults(host={SLOW: 0.5})))
    assert waiting_of(context, origins(context), np.ones(context.pairs.count))[SLOW] > 0.9


def test_without_pairs_there_is_no_origin():
    context = context_of(simulated("data", ranks=8)[:2])
    assert len(origins(context)) == context.pairs.count
