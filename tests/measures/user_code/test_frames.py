"""Only the rows that run at a time that is asked for are nested."""

import numpy as np
import pytest

from tb_bottleneck.measures.user_code.frames import _running


@pytest.mark.parametrize("seed", range(10))
def test_only_the_rows_around_the_times_are_nested(seed: int) -> None:
    generator = np.random.default_rng(seed)
    start = np.sort(generator.integers(0, 1000, 50))
    end = start + generator.integers(0, 100, 50)
    times = generator.integers(-10, 1110, seed)
    running = [row for row in range(50) if any(start[row] <= time < end[row] for time in times)]
    assert _running(start, end, times).tolist() == running
