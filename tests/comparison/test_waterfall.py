"""The waterfall has every regime, and its rows sum to the whole difference."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_bottleneck.base.regime import REGIMES
from tb_bottleneck.comparison.waterfall import waterfall

NS = st.fixed_dictionaries({regime: st.floats(0, 1e12) for regime in REGIMES})


@given(NS, NS)
def test_the_deltas_sum_to_the_difference(a, b):
    bars = waterfall(a, b)
    assert [bar.regime for bar in bars] == list(REGIMES)
    assert sum(bar.delta_ns for bar in bars) == pytest.approx(sum(b.values()) - sum(a.values()), abs=1.0)


def test_a_row_has_the_label_of_its_regime():
    zero = dict.fromkeys(REGIMES, 0.0)
    assert waterfall(zero, zero)[0].title == "Waiting for data"
