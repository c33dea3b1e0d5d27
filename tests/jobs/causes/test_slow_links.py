"""A slow link is named; where a rank of its group was not recorded, it may be that rank instead."""

import pytest
from helpers.simulated_jobs import context_of, simulated
from simulate.jobs.topologies import Faults

from tb_bottleneck.jobs.culprits import culprits_of


def causes(faults, topology="tensor", every=1):
    """The causes with their ranks, of 16 ranks in groups of 4 of which one in `every` was recorded."""
    summaries = [each for each in simulated(topology, faults, ranks=16) if each.facts.rank % every == 0]
    context = context_of(summaries)
    return {
        each.candidate.cause: [context.job.ranks[position] for position in each.candidate.ranks]
        for each in culprits_of(context).culprits
    }


LINK = Faults(link={"t1": 4.0})


def test_a_slow_link_is_named_with_all_ranks_of_its_group():
    assert causes(LINK) == {"slow_link": [4, 5, 6, 7]}


@pytest.mark.parametrize(("every", "recorded"), [(2, [4, 6]), (4, [4])])
@pytest.mark.parametrize("topology", ["tensor", "megatron"])
def test_a_link_to_a_rank_without_a_recording_is_a_slow_group(topology, every, recorded):
    assert causes(LINK, topology, every) == {"slow_group": recorded}


def test_so_is_a_slow_rank_without_a_recording():
    assert causes(Faults(host={5: 0.5}), every=2) == {"slow_group": [4, 6]}


@pytest.mark.parametrize("every", [2, 4])
@pytest.mark.parametrize("topology", ["tensor", "megatron", "experts"])
def test_usual_groups_with_missing_ranks_are_no_cause(topology, every):
    assert causes(Faults(), topology, every) == {}
