"""Tests of the roof that bounds a kernel, from the shapes of its operator, and of the share of both roofs.

Kernels with too few blocks for the device, or that take too little time, do not fill it.
"""

import json
from dataclasses import replace

import numpy as np
import pytest
from helpers.draw import drawn, drawn_trace

from tb_bottleneck.roofline.kernel_bounds import FILLED_SHARE, TOO_SHORT_NS, BoundBy, kernel_bounds_of, underfilled
from tb_bottleneck.trace.trace import load


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


A100 = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}
TF32, BANDWIDTH = 156e12 * 0.87, 2039e9


def bounds(tmp_path, size, took_us):
    """Returns the bounds of a product of two square float matrices, computed by a TF32 kernel."""
    columns = took_us // 100
    trace = drawn(f"op ##{'.' * columns}\nlaunch .|{'.' * columns}\ngpu ..{'#' * columns}", deviceProperties=[A100])
    for event in trace["traceEvents"]:
        if event["name"] == "aten::linear":
            shapes = [[size, size], [size, size]]
            event |= {"name": "aten::mm", "args": {"Input Dims": shapes, "Input type": ["float", "float"]}}
            event["args"]["Concrete Inputs"] = ["", ""]
    path = tmp_path / "run.pt.trace.json"
    path.write_text(json.dumps(trace))
    return kernel_bounds_of(load(str(path)))


def test_a_large_product_is_bound_by_arithmetic_and_far_from_the_bandwidth(tmp_path):
    kernel = bounds(tmp_path, 8192, 10_000)
    assert list(kernel.bound_by) == [BoundBy.COMPUTE]
    assert kernel.reached[0] == pytest.approx(2 * 8192**3 / TF32 / 10e-3, rel=1e-3)
    assert kernel.other[0] == pytest.approx(3 * 8192**2 * 4 / BANDWIDTH / 10e-3, rel=1e-3)


def test_a_small_one_is_bound_by_bandwidth(tmp_path):
    kernel = bounds(tmp_path, 256, 100)
    assert list(kernel.bound_by) == [BoundBy.MEMORY]
    assert kernel.other[0] == pytest.approx(2 * 256**3 / TF32 / 100e-6, rel=1e-3)
    assert kernel.other[0] < kernel.reached[0]
