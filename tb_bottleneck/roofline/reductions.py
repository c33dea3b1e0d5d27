"""Reductions: they read their input once and write the result."""

import math
from collections.abc import Sequence
from typing import Any

from tb_bottleneck.roofline.operator_args import OperatorArguments, Shape, is_list, itemsize, numbers_at, shape_at

# A list of reduced dimensions is recorded as "[0, 1]". These operators take a single number instead; for the others,
# a single number is a dtype.
_ONE_DIMENSION = ("aten::max", "aten::min", "aten::argmax", "aten::argmin", "aten::all", "aten::any")
# Position of the reduced dimensions.
_DIMENSIONS = {
    **dict.fromkeys(_ONE_DIMENSION, 1),
    **dict.fromkeys(("aten::sum", "aten::mean", "aten::nansum", "aten::amax", "aten::amin", "aten::logsumexp"), 1),
    **dict.fromkeys(("aten::var", "aten::std", "aten::var_mean", "aten::count_nonzero"), 1),
    "aten::linalg_vector_norm": 2,
    "aten::norm": 2,
}
_INDEX_BYTES = 8


def reduction_bytes(operator: str, arguments: OperatorArguments) -> int | None:
    """Returns the size of input and output of a reduction; None for other operators or unknown dimensions.

    The result counts with the input's type, even if its own type differs: it is the smaller part.
    """
    at = _DIMENSIONS.get(operator)
    shape, size = shape_at(arguments.dims, 0), itemsize(arguments.type_at(0))
    if at is None or shape is None or size is None or not arguments.concrete:
        return None
    if operator in ("aten::max", "aten::min") and shape_at(arguments.dims, 1):
        return None  # max and min of two tensors are pointwise
    remaining = _remaining(shape, _reduced(operator, arguments.concrete, at))
    if remaining is None:
        return None
    if operator in ("aten::argmax", "aten::argmin"):
        return math.prod(shape) * size + remaining * _INDEX_BYTES
    indices = operator in ("aten::max", "aten::min") and len(arguments.dims) > 1
    return math.prod(shape) * size + remaining * (size + (_INDEX_BYTES if indices else 0))


def _reduced(operator: str, concrete: Sequence[Any], at: int) -> Shape:
    """Returns the reduced dimensions; () means all."""
    text = concrete[at] if at < len(concrete) else ""
    if not isinstance(text, str) or not (is_list(text) or operator in _ONE_DIMENSION):
        return ()
    return numbers_at(concrete, at) or ()


def _remaining(shape: Shape, reduced: Shape) -> int | None:
    """Returns the number of elements that remain of a shape; None if a dimension is out of range."""
    if any(not -len(shape) <= dim < len(shape) for dim in reduced):
        return None
    if not reduced:
        return 1
    removed = {dim % len(shape) for dim in reduced}
    return math.prod(size for dim, size in enumerate(shape) if dim not in removed)
