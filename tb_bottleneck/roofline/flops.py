"""How many floating-point operations an operator does, from the shapes that a trace records."""

from collections.abc import Sequence
from typing import Any

from tb_bottleneck.roofline.attention import attention_of
from tb_bottleneck.roofline.convolutions import convolution_of, input_gradient_flops
from tb_bottleneck.roofline.matmul import product_of


def flops(operator: str, dims: Sequence[Any], concrete: Sequence[Any]) -> int | None:
    """Floating-point operations of a contraction; a multiply-add is two. None where the operator or a shape is unknown.

    `operator` is the innermost one, which holds the kernel: of linear > addmm only addmm has work, and wrappers counted
    beside it would count it twice. `dims` is "Input Dims" and `concrete` is "Concrete Inputs" of the trace, one entry
    per argument; torch before 1.13 did not record the latter, and then most convolutions are unknown. The number is
    the operator's: where it launches several kernels, they share it. Pointwise work is not counted at all.
    """
    found = (
        product_of(operator, dims) or convolution_of(operator, dims, concrete) or attention_of(operator, dims, concrete)
    )
    return input_gradient_flops(operator, dims) if found is None else found.flops
