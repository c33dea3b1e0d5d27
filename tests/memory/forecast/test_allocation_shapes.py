"""Shapes of results are told from the recorded inputs of operators."""

import pytest

from tb_bottleneck.memory.forecast.allocation_shapes import Call, shape_in
from tb_bottleneck.trace.operands import Operands


def call(name: str, *dims, concrete=()) -> Call:
    return Call(name, Operands(tuple(dims), (), tuple(concrete)))


@pytest.mark.parametrize(
    ("name", "dims", "result"),
    [
        ("aten::mm", ((8, 16), (16, 4)), ((8, 4), 16)),
        ("aten::addmm", ((4,), (8, 16), (16, 4)), ((8, 4), 16)),
        ("aten::bmm", ((3, 8, 16), (3, 16, 4)), ((3, 8, 4), 16)),
        ("aten::mm", ((8, 16), (15, 4)), None),
        ("aten::add", ((8, 16), (16, 4)), None),
    ],
)
def test_the_shape_of_a_product(name, dims, result):
    assert call(name, *dims).product == result


def test_the_innermost_call_with_a_fitting_shape_counts():
    chain = (call("aten::empty", (), concrete=("[4, 3]",)), call("aten::relu", (6, 2)))
    assert shape_in(chain, 48)[0] == (4, 3)
    assert shape_in(chain[1:], 48)[0] == (6, 2)
    assert shape_in(chain, 1000) is None


def test_sizes_of_devices_are_rounded_up():
    chain = (call("aten::relu", (100, 2)),)
    assert shape_in(chain, 1024) is None
    assert shape_in(chain, 1024, rounding=512)[0] == (100, 2)


@pytest.mark.parametrize("text", ["", "[", "[1, 'x']", "[-3]", "[" * 1000, "[1e400]", "[9999999999999999]", "{}"])
def test_malformed_sizes_are_ignored(text):
    assert call("aten::empty", (), concrete=(text,)).results == ()


def test_lists_of_tensors_are_inputs():
    assert call("aten::_foreach_add_", ((2, 3), (4,)), ()).inputs == ((2, 3), (4,))
