"""Distinct values and percentiles equal those of numpy, and need no masked arrays."""

import subprocess
import sys

import numpy as np
import pytest

from tb_bottleneck.base.arrays import distinct_rows, distinct_values, percentile

_WITHOUT_MASKED_ARRAYS = """
import sys
import numpy as np
from tb_bottleneck.base.arrays import distinct_values, percentile

distinct_values(np.array([1, 1]))
percentile(np.array([1, 2]), 10)
assert "numpy.ma" not in sys.modules
"""


@pytest.mark.parametrize("seed", range(20))
def test_statistics_equal_those_of_numpy(seed: int) -> None:
    generator = np.random.default_rng(seed)
    integers = generator.integers(-(10**15), 10**15, seed + 1)
    for values in (integers, integers / 7, integers % 5):
        assert percentile(values, 5 * seed) == np.percentile(values, 5 * seed)
    assert distinct_values(integers % 5).tolist() == np.unique(integers % 5).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_a_percentile_with_counts_equals_that_of_the_repeated_values(seed: int) -> None:
    generator = np.random.default_rng(seed)
    values, counts = generator.random(seed + 1), generator.integers(1, 9, seed + 1)
    assert percentile(values, 5 * seed, counts) == np.percentile(np.repeat(values, counts), 5 * seed)


@pytest.mark.parametrize("largest", [3, 40, 10**6])
def test_distinct_rows_equal_those_of_numpy(largest: int) -> None:
    columns = np.random.default_rng(largest).integers(0, largest, (3, 500))
    first, which = distinct_rows(*columns)
    expected = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    assert first.tolist() == expected[1].tolist()
    assert which.tolist() == expected[2].reshape(-1).tolist()


def test_no_value_has_no_distinct_values() -> None:
    assert distinct_values(np.empty(0, np.int64)).tolist() == []
    assert [part.tolist() for part in distinct_rows(np.empty(0, np.int64))] == [[], []]


def test_masked_arrays_are_not_imported() -> None:
    if (
        "numpy.ma"
        in subprocess.run(
            [sys.executable, "-c", "import sys, numpy; print(*sys.modules)"], capture_output=True, text=True, check=True
        ).stdout.split()
    ):
        pytest.skip("this numpy imports numpy.ma itself")
    subprocess.run([sys.executable, "-c", _WITHOUT_MASKED_ARRAYS], check=True)
