"""Decodes the recorded inputs of an operator: the shapes, types and values."""

import json
from typing import Any

from tb_bottleneck.base.measure import Record

Shape = tuple[Any, ...]

# Largest number of elements of a tensor. No device has room for more, and products of a few numbers up to this limit
# fit into floats.
MAX_ELEMENTS = 2**50


class Operands(Record, frozen=True):
    """Inputs of one operator call, as the profiler recorded them with record_shapes=True.

    `dims` has one shape per input: () for scalars, a tuple of shapes for lists of tensors. `types` has torch's name of
    the type of each input, such as "float", "c10::BFloat16", "Scalar" or "TensorList", or an empty text. `concrete` has
    for each input that is a scalar or a list the value as text.
    """

    dims: tuple[Shape, ...]
    types: tuple[str, ...]
    concrete: tuple[str, ...]


def operands_of(signature: tuple[bytes, bytes, bytes]) -> Operands | None:
    """Returns the inputs that `signature` describes: three JSON texts with the shapes, the types and the values.

    Returns None if the shapes are missing or malformed, or if a shape has more than MAX_ELEMENTS elements.
    """
    dims, types, concrete = (_list(part) for part in signature)
    if dims is None or not all(_is_shape(dim) for dim in dims):
        return None
    return Operands(
        dims=tuple(_frozen(dim) for dim in dims),
        types=tuple(map(str, types or ())),
        concrete=tuple(map(str, concrete or ())),
    )


def _list(text: bytes) -> list[Any] | None:
    try:
        value = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _is_shape(value: Any, depth: int = 0) -> bool:
    """Returns True if `value` is a shape: a list of sizes, a list of lists of sizes, or an empty text.

    Older torch writes an empty list for a list of tensors.
    """
    if not isinstance(value, list):
        return isinstance(value, str) and not value
    elements = 1
    for size in value:
        if isinstance(size, int):
            elements *= max(size, 1)
            if size < 0 or elements > MAX_ELEMENTS:
                return False
        elif depth or not _is_shape(size, depth + 1):
            return False
    return True


def _frozen(value: Any) -> Shape:
    if not isinstance(value, list):
        return ()
    return tuple(_frozen(size) if isinstance(size, list) else size for size in value)
