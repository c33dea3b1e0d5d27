"""The bars of a waterfall: every regime, and the deltas are the whole difference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_bottleneck.comparison.waterfall import largest, waterfall
from tb_bottleneck.regime import REGIMES

NS = st.fixed_dictionaries({regime: st.floats(0, 1e12) for regime in REGIMES})


@given(NS, NS)
def test_the_deltas_sum_to_the_difference(a, b):
    bars = waterfall(a, b)
    assert [bar.regime for bar in bars] == list(REGIMES)
    assert sum(bar.delta_ns for bar in bars) == pytest.approx(sum(b.values()) - sum(a.values()), abs=1.0)


def test_the_largest_is_the_one_that_grew_or_shrank_most():
    zero = dict.fromkeys(REGIMES, 0.0)
    bars = waterfall(zero | {"input": 5.0, "sync": 1.0}, zero | {"sync": 3.0, "host": 1.0})
    assert largest(bars, 1).regime == "sync"
    assert largest(bars, -1).regime == "input"
    assert largest(bars, -1).title == "Waiting for data"
