"""Decodes the recorded inputs of an operator: shapes, types and values."""

import json
from typing import Any

from tb_bottleneck.base.measure import Record

Shape = tuple[Any, ...]

# No device has room for more elements, and products of a few such numbers fit into floats.
MAX_ELEMENTS = 2**50


class Operands(Record, frozen=True):
    """Inputs of one operator call, as the profiler recorded them with record_shapes=True.

    `dims` has one shape per input: () for scalars, a tuple of shapes for lists of tensors. `types` are torch's names
    (float, c10::BFloat16, Scalar, TensorList, empty). `concrete` has the values of scalars and lists as text.
    """

    dims: tuple[Shape, ...]
    types: tuple[str, ...]
    concrete: tuple[str, ...]


def operands_of(signature: tuple[bytes, bytes, bytes]) -> Operands | None:
    """Returns the inputs that `signature` (shapes, types, values as JSON text) describes.

    None if the shapes are missing, malformed or larger than MAX_ELEMENTS elements.
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
    """Returns True for a list of sizes or a list of such lists (older torch writes "[]" for a list of tensors)."""
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
