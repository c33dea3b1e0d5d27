"""The peak of the memory is the event with the most bytes in use, where about the most is reserved."""

import numpy as np
import pytest

from tb_bottleneck.memory.blocks import peak_row


@pytest.mark.parametrize(
    ("reserved", "in_use", "row"),
    [
        ([10, 100, 100, 100], [5, 60, 80, 70], 2),
        ([1000, 1000, 1002], [900, 950, 10], 1),
        ([500, 1000, 1000], [490, 300, 200], 1),
        ([100, 100], [50, 50], 1),
    ],
    ids=["most in use", "a small segment later", "much less reserved", "the last one"],
)
def test_the_peak(reserved: list[int], in_use: list[int], row: int) -> None:
    assert peak_row(np.array(reserved), np.array(in_use)) == row
