"""Reads the recorded arguments of an operator: shapes, names of types, and the values of non-tensors as text.

If the name of a kernel does not contain a precision, the types of the operands give it.
"""

import math
import re
from collections.abc import Sequence
from typing import Any

from tb_bottleneck.base.measure import Record
from tb_bottleneck.knowledge.catalogue import Precision
from tb_bottleneck.trace.operands import Operands

Shape = tuple[int, ...]

# c10/util/typeid and torch's scalar types: bytes per element, by the name in "Input type".
ITEMSIZES = {
    "float": 4,
    "double": 8,
    "c10::Half": 2,
    "c10::BFloat16": 2,
    "c10::Float8_e4m3fn": 1,
    "c10::Float8_e5m2": 1,
    "c10::Float8_e4m3fnuz": 1,
    "c10::Float8_e5m2fnuz": 1,
    "c10::Float8_e8m0fnu": 1,
    "c10::Float4_e2m1fn_x2": 1,
    "bool": 1,
    "signed char": 1,
    "unsigned char": 1,
    "short": 2,
    "short int": 2,
    "unsigned short": 2,
    "short unsigned int": 2,
    "int": 4,
    "unsigned int": 4,
    "long": 8,
    "long int": 8,
    "long long": 8,
    "long long int": 8,
    "unsigned long": 8,
    "long unsigned int": 8,
    "c10::complex<c10::Half>": 4,
    "c10::complex<float>": 8,
    "c10::complex<double>": 16,
    "c10::qint8": 1,
    "c10::quint8": 1,
    "c10::qint32": 4,
}
# c10/core/ScalarType.h: bytes per element, by the recorded number of a dtype argument.
DTYPE_ITEMSIZES = {
    0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 2, 6: 4, 7: 8, 8: 4, 9: 8, 10: 16, 11: 1, 15: 2, 23: 1, 24: 1, 25: 1, 26: 1,
}  # fmt: skip

_WHOLE = re.compile(r"-?\d{1,18}")


def itemsize(type_name: str) -> int | None:
    """Returns the bytes per element of the type with this name in traces; None for lists, other values and unknown
    types."""
    return ITEMSIZES.get(type_name)


def shape_at(dims: Sequence[Any], index: int) -> Shape | None:
    """Returns the recorded shape of the input at `index`, () for scalars; None if it is missing or a list of
    tensors."""
    return as_shape(dims[index]) if 0 <= index < len(dims) else None


def as_shape(raw: object) -> Shape | None:
    """Returns a recorded shape as a tuple; None if it is not a list of sizes."""
    if not isinstance(raw, list | tuple):
        return None
    sizes = tuple(raw)
    return sizes if all(isinstance(size, int) and size >= 0 for size in sizes) else None


def numbers_at(concrete: Sequence[Any], index: int | None) -> Shape | None:
    """Returns the integers of the argument at `index`, such as "[1, 2]" or "3"; None if missing or not integers."""
    text = concrete[index] if index is not None and 0 <= index < len(concrete) else None
    if not isinstance(text, str):
        return None
    if is_list(text):
        words = [word.strip() for word in text[1:-1].split(",")] if text[1:-1].strip() else []
    else:
        words = [text]
    return tuple(int(word) for word in words) if all(_WHOLE.fullmatch(word) for word in words) else None


def is_list(text: str) -> bool:
    """Returns True if the text of an argument is a list."""
    return text.startswith("[") and text.endswith("]")


def flags_at(concrete: Sequence[Any], index: int | None) -> tuple[bool, ...] | None:
    """Returns the booleans of the argument at `index`, such as "True" or "[True, False]"; None if not booleans."""
    text = concrete[index] if index is not None and 0 <= index < len(concrete) else None
    if not isinstance(text, str) or not text:
        return None
    words = [word.strip() for word in text.strip("[]").split(",")]
    return tuple(word == "True" for word in words) if all(word in ("True", "False") for word in words) else None


class OperatorArguments(Record, frozen=True):
    """The arguments of one operator: recorded shapes (`dims`), names of types, and values as text (`concrete`).

    `list_itemsize` is the size in bytes of an element of tensors in lists, or None if unknown. Traces do not contain
    it.
    """

    dims: Sequence[Any]
    types: Sequence[str]
    concrete: Sequence[Any]
    list_itemsize: int | None = None

    def type_at(self, index: int) -> str:
        """Returns the name of the type of the argument at `index`; empty if there is no such argument."""
        return self.types[index] if 0 <= index < len(self.types) else ""

    def elements(self, index: int) -> int | None:
        """Returns the number of elements of the tensor at `index`; None if there is no shape."""
        shape = shape_at(self.dims, index)
        return None if shape is None else math.prod(shape)

    def bytes(self, index: int) -> int | None:
        """Returns the bytes of the tensor at `index`; 0 if there is no such argument or it is not a tensor, None if the
        type of the tensor is unknown."""
        shape, size = shape_at(self.dims, index), itemsize(self.type_at(index))
        if size is None or shape is None:
            return None if shape else 0
        return math.prod(shape) * size

    def list_bytes(self, index: int) -> int | None:
        """Returns the bytes of all tensors in the list at `index`; None if shapes or element size are unknown."""
        raw = self.dims[index] if 0 <= index < len(self.dims) else None
        if self.list_itemsize is None or not isinstance(raw, list | tuple):
            return None
        shapes = [as_shape(entry) for entry in raw]
        elements = [math.prod(shape) for shape in shapes if shape is not None]
        return self.list_itemsize * sum(elements) if len(elements) == len(shapes) else None


# Largest plausible ratio of a computed rate to a peak rate. Winograd's largest common tiles save a factor of 4 in
# multiplications, and caches are faster than memory by less than that. If the ratio is larger, the kernel did not do
# this work: some recordings link kernels to wrong operators (12 times an A100's peak in one public recording).
IMPLAUSIBLE_FROM = 4.0

_DTYPE_OF_OPERAND = {
    "c10::BFloat16": "bf16",
    "c10::Half": "fp16",
    "c10::Float8_e4m3fn": "fp8",
    "c10::Float8_e5m2": "fp8",
    "c10::Float8_e4m3fnuz": "fp8",
    "c10::Float8_e5m2fnuz": "fp8",
    "c10::Float4_e2m1fn_x2": "fp4",
}


def with_operand_type(precision: Precision | None, operand_type: str) -> Precision | None:
    """Returns `precision`. If `precision` names the kind of arithmetic unit but no number type, the type is taken from
    `operand_type`, the type of the operands.

    Only operands of 16 bits or less give a type, because operands of type "float" may be multiplied as fp32 or tf32.
    """
    if precision is None or precision.dtype is not None:
        return precision
    return Precision(precision.unit, _DTYPE_OF_OPERAND.get(operand_type))


def first_tensor_type(operands: Operands) -> str:
    """Returns the type of the first input that is a tensor; empty if there is none."""
    return next((kind for kind, dims in zip(operands.types, operands.dims, strict=False) if dims), "")


def has_double_operand(operands: Operands) -> bool:
    """Returns True if an input is a float64 tensor with at least one dimension, because torch then computes in
    float64."""
    return any(kind == "double" and dims for kind, dims in zip(operands.types, operands.dims, strict=False))


def dtype_of_operand(operand_type: str) -> str | None:
    """Returns the type of an operand as one of DTYPES, such as "fp32" for "float"; None if it is not floating-point."""
    return {"float": "fp32", "double": "fp64"}.get(operand_type) or _DTYPE_OF_OPERAND.get(operand_type)
