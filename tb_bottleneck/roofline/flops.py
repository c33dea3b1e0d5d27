"""Number of floating-point operations of an operator, from recorded shapes."""

from collections.abc import Sequence
from typing import Any

from tb_bottleneck.roofline.attention import attention_of
from tb_bottleneck.roofline.convolutions import convolution_of, input_gradient_flops
from tb_bottleneck.roofline.matmul import product_of


def flops(operator: str, dims: Sequence[Any], concrete: Sequence[Any]) -> int | None:
    """Returns the floating-point operations of a contraction; None if the operator or a shape is unknown.

    A multiply-add counts as two. `operator` is the innermost operator, which launches the kernel: of linear > addmm,
    only addmm has work, so that wrappers do not count it twice. `dims` is "Input Dims" and `concrete` is "Concrete
    Inputs" of the trace, with one entry per argument; torch before 1.13 did not record the latter, so that most
    convolutions are unknown. The number belongs to the operator: if it launches several kernels, they share it.
    Pointwise work is not counted.
    """
    contraction = (
        product_of(operator, dims) or convolution_of(operator, dims, concrete) or attention_of(operator, dims, concrete)
    )
    return input_gradient_flops(operator, dims) if contraction is None else contraction.flops
