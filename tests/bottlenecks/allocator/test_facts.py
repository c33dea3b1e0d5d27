"""Tests driver memory calls: the caller that frees memory shows the reason."""

import pytest
from simulate.examine import measured
from simulate.kineto import DIALECTS, Recording
from simulate.problems import PROBLEMS
from simulate.workload import healthy

from tb_bottleneck.bottlenecks.allocator.facts import (
    cache_frees,
    driver_allocations,
    frees_under_pressure,
    pinned_allocations,
)

EMPTIED = PROBLEMS["emptied cache"].make(1).but(mallocs=8)


@pytest.mark.parametrize(("pressed", "outside", "inside"), [(False, 4, 0), (True, 0, 4)])
def test_memory_given_back_inside_operators_is_pressure_and_outside_an_emptied_cache(pressed, outside, inside):
    recording = measured(EMPTIED.but(pressed=pressed))
    assert driver_allocations(recording).value == 8
    assert cache_frees(recording).value == outside
    assert frees_under_pressure(recording).value == inside
    assert pinned_allocations(recording).value == 0
    assert driver_allocations(recording).begin is not None


def test_a_run_that_asks_for_nothing_has_none_and_the_pinning_thread_is_not_the_training():
    noisy = measured(healthy(1), Recording(DIALECTS[3], noise=True))
    for measure in (driver_allocations, cache_frees, frees_under_pressure, pinned_allocations):
        assert measure(noisy).value == 0
