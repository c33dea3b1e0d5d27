"""Differences are separated from noise by the steps, and never claimed if the steps do not show them."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb_bottleneck.comparison.significance import (
    _by_normal,
    _ranks,
    difference,
    mann_whitney,
    mean_interval,
    undisturbed,
)

TIMES = st.lists(st.integers(1, 50), min_size=2, max_size=5).map(np.array)


def test_a_clear_difference_has_its_interval():
    found = difference(np.array([100, 101, 99, 100, 102, 98]), np.array([50, 51, 49, 50, 52, 50]))
    assert found.significant
    assert found.speedup == pytest.approx(100 / 50)
    assert found.low < found.speedup < found.high
    assert found.noise < 0.03


def test_a_difference_inside_the_spread_is_not_claimed():
    found = difference(np.array([100, 140, 80, 120, 95, 105]), np.array([98, 110, 85, 130, 101, 90]))
    assert not found.significant
    assert "p = " in found.test


def test_one_step_has_no_noise_and_so_no_difference():
    found = difference(np.array([100]), np.array([50, 51]))
    assert not found.significant
    assert found.noise == 0
    assert found.test.startswith("One run has only one step")


def test_too_few_steps_for_a_test_are_told_apart_only_where_they_do_not_overlap():
    apart = difference(np.array([10, 11, 12]), np.array([20, 21, 22]))
    beside = difference(np.array([10, 11, 20]), np.array([20, 21, 22]))
    assert apart.significant
    assert not beside.significant
    assert "too few for a test" in apart.test


def test_one_disturbed_step_does_not_decide():
    """Every step of B is shorter, but the profiler stops in the last one, which moves the mean to that of A."""
    a, b = np.array([149.5, 149.8, 149.5, 154.3, 154.5]), np.array([122.5, 123.2, 118.6, 119.7, 202.6])
    assert mann_whitney(a, b) > 0.05
    found = difference(a, b)
    assert (found.verdict, found.by_means) == ("faster", False)
    assert found.speedup == pytest.approx(149.8 / 122.5)
    assert "5 steps against 4, without 1 disturbed step" in found.test


def test_a_disturbed_step_makes_no_difference_between_equal_runs():
    a = np.array([100, 101, 99, 102, 98, 100, 103, 97, 100, 400])
    assert difference(a, a[:-1]).verdict == "none"
    assert undisturbed(a).tolist() == [True] * 9 + [False]


def test_a_long_step_among_uneven_ones_is_no_disturbance():
    """Steps vary by a third where the host runs ahead: what one step takes longer, the next ones take less."""
    assert undisturbed(np.array([165.4, 210.7, 132.9, 127.4, 140.1])).all()


def test_long_steps_that_recur_are_no_disturbance():
    """In every fourth step, B waits for its loader: the median does not show that it takes twice as long."""
    a = np.array([100, 101, 99, 100] * 5)
    b = np.array([100, 101, 99, 500] * 5)
    found = difference(a, b)
    assert undisturbed(b).all()
    assert found.speedup == pytest.approx(1, abs=0.02)
    assert (found.significant, found.by_means, found.verdict) == (False, True, "slower")
    assert found.mean_speedup == pytest.approx(0.5)


def test_the_means_decide_if_the_typical_step_is_shorter_and_the_run_is_not():
    a, b = np.array([120, 121, 119, 120] * 12), np.array([100, 101, 99, 300] * 12)
    found = difference(a, b)
    assert found.speedup > 1
    assert found.verdict == "slower"


def test_ranks_that_differ_and_medians_that_may_not_are_both_said():
    a = np.array([10.0, 10, 10, 10, 10, 20, 20, 20, 20, 20])
    b = np.array([9.0, 9, 9, 9, 19, 19, 19, 19.5, 19.5, 9])
    found = difference(a, b)
    assert found.verdict == "none"
    assert "which includes 1" in found.test or "p = " in found.test


def test_one_slow_step_among_equal_ones_is_no_difference():
    """The mean doubles by a single checkpoint, and the steps are the same."""
    assert not difference(np.array([10, 10, 10, 10, 10, 70]), np.array([10, 10, 10, 10, 10, 10])).significant


@settings(max_examples=60, deadline=None)
@given(TIMES, TIMES)
def test_mann_whitney_counts_the_splits_that_are_as_uneven(a, b):
    """Held against counting pairs: U = pairs in which A is longer, ties half."""

    def uneven(first, second):
        pairs = [(x > y) + (x == y) / 2 for x in first for y in second]
        return abs(sum(pairs) - len(pairs) / 2)

    every = np.concatenate((a, b))
    rows = range(len(every))
    splits = [
        uneven(every[list(taken)], every[[row for row in rows if row not in taken]])
        for taken in combinations(rows, len(a))
    ]
    as_uneven = sum(one >= uneven(a, b) - 1e-9 for one in splits)
    assert mann_whitney(a, b) == pytest.approx(as_uneven / len(splits))


def test_many_steps_are_tested_as_few_are():
    """For 8 against 8 steps, the normal distribution gives nearly the same p as counting the splits."""
    rng = np.random.default_rng(1)
    for shift in (0.0, 3.0, 8.0):
        a, b = rng.normal(100, 5, 8), rng.normal(100 - shift, 5, 8)
        ranks = _ranks(np.concatenate((a, b)))
        seen = abs(ranks[:8].sum() - 8 * 17 / 2)
        assert _by_normal(ranks, 8, seen) == pytest.approx(mann_whitney(a, b), abs=0.02)


def test_a_million_steps_take_no_memory_and_no_time():
    rng = np.random.default_rng(2)
    a, b = rng.normal(100, 5, 1_000_000), rng.normal(99, 5, 1_000_000)
    found = difference(a, b)
    assert found.significant
    assert found.noise < 0.001


def test_equal_steps_by_the_hundred_differ_in_nothing():
    assert mann_whitney(np.full(200, 7), np.full(300, 7)) == 1.0


def test_the_interval_of_a_mean_holds_the_mean_and_shrinks_to_it():
    low, high = mean_interval(np.array([90, 110, 100]))
    assert low < 100 < high
    assert mean_interval(np.array([7])) == (7, 7)
