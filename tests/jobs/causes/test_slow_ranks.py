"""Which ranks are called slow, and for which cause."""

import pytest
from helpers.simulated_jobs import Faults, context_of, simulated

from tb_bottleneck.jobs.causes.slow_ranks import persistent_ranks, slow_ranks


@pytest.mark.parametrize(
    ("longer", "named"),
    [({6: 0.6}, [6]), ({6: 0.6, 2: 0.4}, [2, 6]), ({6: 1.0, 2: 0.12}, [6]), ({6: 0.14, 2: 0.12}, [2, 6])],
    ids=["one", "two", "a little", "two that are a little slower"],
)
def test_a_rank_that_is_slower_by_far_less_is_left_out(longer, named):
    context = context_of(simulated("data", Faults(host=longer)))
    assert persistent_ranks(context).tolist() == sorted(longer)
    assert [found.ranks.tolist() for found in slow_ranks(context)] == [named]
