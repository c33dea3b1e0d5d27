"""Matrix product operators and their sizes."""

import math
from collections.abc import Sequence
from typing import Any

from tb_bottleneck.base.record import Record
from tb_bottleneck.roofline.operator_args import shape_at

# Positions of the two factors (aten/src/ATen/native/native_functions.yaml). Wrappers such as matmul and einsum are
# omitted: they never launch a kernel themselves.
_FACTORS = {
    "aten::mm": (0, 1),
    "aten::bmm": (0, 1),
    "aten::addmm": (1, 2),
    "aten::_addmm_activation": (1, 2),
    "aten::baddbmm": (1, 2),
    "aten::_scaled_mm": (0, 1),
    "aten::_int_mm": (0, 1),
    "aten::mv": (0, 1),
    "aten::addmv": (1, 2),
    "aten::dot": (0, 1),
}


class Product(Record, frozen=True):
    """`batch` products of an m x k by a k x n matrix; `left` and `right` are the factors' positions."""

    batch: int
    m: int
    k: int
    n: int
    left: int
    right: int

    @property
    def flops(self) -> int:
        """2 b m k n: one multiplication and one addition each. Bias and scale are not counted."""
        return 2 * self.batch * self.m * self.k * self.n


def product_of(operator: str, dims: Sequence[Any]) -> Product | None:
    """Returns the product of an operator; None for other operators, or if the shapes do not match."""
    operator = operator.removesuffix("_")  # addmm_ and similar operators write to self
    if operator == "aten::linear":
        return _linear(dims)
    if operator not in _FACTORS:
        return None
    left, right = _FACTORS[operator]
    a, b = shape_at(dims, left), shape_at(dims, right)
    if not a or not b or len(a) > 3 or len(b) > 3:
        return None
    if len(a) == 1:
        a = (1, *a)
    if len(b) == 1:
        b = (*b, 1)
    if a[:-2] != b[:-2] or a[-1] != b[-2]:
        return None
    return Product(math.prod(a[:-2]), a[-2], a[-1], b[-1], left, right)


def _linear(dims: Sequence[Any]) -> Product | None:
    """Parses linear(input, weight): each row of the input times the transposed weight. Often a wrapper around addmm."""
    a, b = shape_at(dims, 0), shape_at(dims, 1)
    if not a or not b or len(b) != 2 or a[-1] != b[1]:
        return None
    return Product(1, math.prod(a[:-1]), a[-1], b[0], 0, 1)
