"""The limit that a run's fast steps set to the gain of a fix."""

import numpy as np
import pytest

from tb_bottleneck.measures.unaffected_steps import MIN_WITHOUT, fast_step


def times(*values):
    return np.array(values, np.float64)


def test_the_steps_without_the_cause_set_the_limit():
    assert fast_step(times(50, 10, 10, 50, 10, 10), times(40, 0, 0, 40, 0, 0)) == 10


def test_the_limit_is_their_fast_end_and_not_one_incomplete_step():
    steps = times(50, *[10] * 11, 1)
    assert fast_step(steps, times(40, *[0] * 12)) == 10


def test_a_cause_in_all_steps_sets_none():
    assert fast_step(times(30, 30, 30, 30), times(20, 20, 20, 20)) == 0
    assert fast_step(times(30, 30, 30, 10), times(20, 20, 20, 0)) == 0, "a single step without it proves little"


def test_without_a_cause_there_is_no_limit():
    assert fast_step(times(10, 10, 10, 10), times(0, 0, 0, 0)) == 0
    assert fast_step(times(), times()) == 0


@pytest.mark.parametrize("without", range(6))
def test_a_few_steps_without_it_are_needed(without):
    steps, costs = times(*[50] * 4, *[10] * without), times(*[40] * 4, *[0] * without)
    assert (fast_step(steps, costs) > 0) == (without >= MIN_WITHOUT)
