"""Reductions: they read everything once and write what is left."""

import math
from collections.abc import Sequence
from typing import Any

from tb_bottleneck.roofline.operator_args import Arguments, Shape, is_list, itemsize, numbers_at, shape_at

# A list of reduced dimensions is written "[0, 1]". These operators take a plain number instead, which for the others
# would be a dtype.
_ONE_DIMENSION = ("aten::max", "aten::min", "aten::argmax", "aten::argmin", "aten::all", "aten::any")
# Where the reduced dimensions stand.
_DIMENSIONS = {
    **dict.fromkeys(_ONE_DIMENSION, 1),
    **dict.fromkeys(("aten::sum", "aten::mean", "aten::nansum", "aten::amax", "aten::amin", "aten::logsumexp"), 1),
    **dict.fromkeys(("aten::var", "aten::std", "aten::var_mean", "aten::count_nonzero"), 1),
    "aten::linalg_vector_norm": 2,
    "aten::norm": 2,
}
_INDEX_BYTES = 8


def reduction_bytes(operator: str, arguments: Arguments) -> int | None:
    """In and out of a reduction; None where it is none, or where the reduced dimensions were not recorded.

    A result in another type than the input's is counted in the input's: it is the small side.
    """
    at = _DIMENSIONS.get(operator)
    shape, size = shape_at(arguments.dims, 0), itemsize(arguments.type_at(0))
    if at is None or shape is None or size is None or not arguments.concrete:
        return None
    if operator in ("aten::max", "aten::min") and shape_at(arguments.dims, 1):
        return None  # of two tensors: pointwise
    left = _left(shape, _reduced(operator, arguments.concrete, at))
    if left is None:
        return None
    if operator in ("aten::argmax", "aten::argmin"):
        return math.prod(shape) * size + left * _INDEX_BYTES
    indices = operator in ("aten::max", "aten::min") and len(arguments.dims) > 1
    return math.prod(shape) * size + left * (size + (_INDEX_BYTES if indices else 0))


def _reduced(operator: str, concrete: Sequence[Any], at: int) -> Shape:
    """The dimensions that are reduced; none given means all."""
    text = concrete[at] if at < len(concrete) else ""
    if not isinstance(text, str) or not (is_list(text) or operator in _ONE_DIMENSION):
        return ()
    return numbers_at(concrete, at) or ()


def _left(shape: Shape, reduced: Shape) -> int | None:
    """How many elements are left of a shape."""
    if any(not -len(shape) <= dim < len(shape) for dim in reduced):
        return None
    if not reduced:
        return 1
    gone = {dim % len(shape) for dim in reduced}
    return math.prod(size for dim, size in enumerate(shape) if dim not in gone)
