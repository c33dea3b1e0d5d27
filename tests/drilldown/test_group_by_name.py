"""The shares of groups of rows: what an interval set gives, between 0 and 1 for any rows."""

import numpy as np
import pytest

from tb_bottleneck.base.intervals import clip, union
from tb_bottleneck.drilldown.group_by_name import groups_of


@pytest.mark.parametrize("seed", range(20))
def test_shares_are_those_of_interval_sets(seed):
    chance = np.random.default_rng(seed)
    count = int(chance.integers(0, 40))
    names, start = chance.integers(0, 4, count), chance.integers(-50, 150, count)
    end = start + chance.integers(0, 60, count)
    groups = groups_of(names, start, end)
    expected = [clip(union(start[names == name], end[names == name]), 0, 100).total() / 100 for name in groups.value]
    assert groups.shares(start, end, 0, 100).tolist() == pytest.approx(expected)


def test_a_window_without_length_has_no_share():
    one = np.array([5])
    assert groups_of(one, one, one + 3).shares(one, one + 3, 7, 7).tolist() == [0]
