"""Times without the profiler's time, and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tb_bottleneck.attribution.profiler_time.costs import time_map

SINCE_1970 = 1_795_600_000_000_000_000


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize("base", [0, SINCE_1970])
def test_later_times_move_forward_by_what_was_removed(base: int) -> None:
    mapped = time_map(ints(100, 300) + base, ints(200, 400) + base, np.array([50.0, 90.0]))
    recorded = ints(0, 100, 150, 200, 250, 300, 350, 400, 1000) + base
    assert (mapped.without(recorded) - base).tolist() == [0, 100, 125, 150, 200, 250, 255, 260, 860]
    assert (mapped.recorded(mapped.without(recorded)) - recorded).tolist() == [0] * 9


def test_without_spans_nothing_moves() -> None:
    none = np.empty(0, np.int64)
    assert time_map(none, none, np.empty(0)).without(ints(1, 2)).tolist() == [1, 2]


@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 1000), st.floats(0, 0.95)), min_size=1, max_size=30))
def test_the_order_of_times_stays(spans: list[tuple[int, int, float]]) -> None:
    edges = np.cumsum([length for pause, inside, _ in spans for length in (pause, inside)])
    removed = np.array([part * inside for _, inside, part in spans])
    mapped = time_map(edges[::2], edges[1::2], removed)
    times = np.arange(0, edges[-1] + 5)
    without = mapped.without(times)
    assert (np.diff(without) >= 0).all()
    assert without[-1] == pytest.approx(times[-1] - removed.sum(), abs=1)
