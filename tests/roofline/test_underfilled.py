"""Kernels with too few blocks for the device, or that take too little time."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.draw import drawn_trace

from tb_bottleneck.roofline.kernel_bounds import FILLED_SHARE, TOO_SHORT_NS, underfilled


@pytest.mark.parametrize(
    ("length_ns", "blocks", "multiprocessors", "small"),
    [
        (1_000_000, 65, 132, True),
        (1_000_000, 66, 132, False),
        (1_000_000, 0, 132, False),  # blocks not recorded
        (1_000_000, 1, None, False),
        (TOO_SHORT_NS, 132, 132, False),
        (TOO_SHORT_NS - 1, 132, 132, True),
    ],
)
def test_few_blocks_or_a_short_time_are_underfilled(length_ns, blocks, multiprocessors, small):
    assert FILLED_SHARE * 132 == 66
    ops = drawn_trace("step aabb\ngpu  #.#.").device_ops.take([0])
    ops = replace(ops, end=ops.start + length_ns, blocks=np.array([blocks]))
    assert underfilled(ops, multiprocessors).tolist() == [small]
