"""The inputs of operators, decoded for just the signatures that are asked for."""

import json
from dataclasses import dataclass
from typing import Any

Shape = tuple[Any, ...]


@dataclass(frozen=True)
class Operands:
    """Inputs of one operator call, as the profiler recorded them with record_shapes=True.

    `dims` holds one shape per input: () for scalars, a tuple of shapes for lists of tensors. `types` are torch's names
    (float, c10::BFloat16, Scalar, TensorList, empty). `concrete` are the values of scalars and lists, as text.
    """

    dims: tuple[Shape, ...]
    types: tuple[str, ...]
    concrete: tuple[str, ...]


def operands_of(signature: tuple[bytes, bytes, bytes]) -> Operands | None:
    """The inputs that a signature tells, None where it is malformed."""
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
        found = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _is_shape(value: Any, depth: int = 0) -> bool:
    """A list of whole sizes, or one list of such lists (older torch writes the text "[]" for a list of tensors)."""
    if not isinstance(value, list):
        return isinstance(value, str) and not value
    return all((isinstance(size, int) and size >= 0) or (depth < 1 and _is_shape(size, depth + 1)) for size in value)


def _frozen(value: Any) -> Shape:
    if not isinstance(value, list):
        return ()
    return tuple(_frozen(size) if isinstance(size, list) else size for size in value)
