"""Precision of a kernel from the types of its operator's operands, where the kernel's name does not contain it."""

from tb_bottleneck.knowledge.catalogue import Precision
from tb_bottleneck.trace.operands import Operands

# Winograd's largest common tiles save a factor of 4 in multiplications, and caches outrun their memory by less. A
# larger share of a peak means that the work was not done in this time: some recordings tie kernels to the wrong
# operators (12 times an A100's peak in one public recording).
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
    """Returns the precision, with the type of the operator's operands if the kernel's name does not contain one.

    Only operands of 16 bits or less decide the type: "float" may be multiplied as fp32 or as tf32.
    """
    if precision is None or precision.dtype is not None:
        return precision
    return Precision(precision.unit, _DTYPE_OF_OPERAND.get(operand_type))


def first_tensor_type(operands: Operands) -> str:
    """Returns the type of the first input that is a tensor; empty if there is none."""
    return next((kind for kind, dims in zip(operands.types, operands.dims, strict=False) if dims), "")


def has_double_operand(operands: Operands) -> bool:
    """Returns True if an input is a tensor of at least one dimension in float64: torch then computes in float64."""
    return any(kind == "double" and dims for kind, dims in zip(operands.types, operands.dims, strict=False))


def dtype_of_operand(operand_type: str) -> str | None:
    """Returns the type of an operand as one of DTYPES, "fp32" for "float"; None if it is no floating-point type."""
    return {"float": "fp32", "double": "fp64"}.get(operand_type) or _DTYPE_OF_OPERAND.get(operand_type)
