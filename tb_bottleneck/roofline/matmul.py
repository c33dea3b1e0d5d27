"""Computes the floating-point operations of matrix multiplications and convolutions from recorded shapes."""

import math
from collections.abc import Sequence
from typing import Any

from tb_bottleneck.base.measure import Record
from tb_bottleneck.roofline.attention import attention_of
from tb_bottleneck.roofline.operator_args import Shape, flags_at, numbers_at, shape_at


def flops(operator: str, dims: Sequence[Any], concrete: Sequence[Any]) -> int | None:
    """Returns the floating-point operations of a matrix product, convolution or attention operator.

    None if the operator or a shape is unknown. A multiply-add counts as two operations. Pointwise work is not counted.
    `operator` must be the innermost operator, which launches the kernel: if linear calls addmm, pass addmm, so that
    operations are not counted twice. The result is for the whole operator, which may launch several kernels.

    `dims` is "Input Dims" and `concrete` is "Concrete Inputs" of the trace, with one element per argument. torch before
    1.13 does not record "Concrete Inputs", so most convolutions are unknown there.
    """
    contraction = (
        product_of(operator, dims) or convolution_of(operator, dims, concrete) or attention_of(operator, dims, concrete)
    )
    return input_gradient_flops(operator, dims) if contraction is None else contraction.flops


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
    """`batch` multiplications of an m x k matrix by a k x n matrix.

    `left` and `right` are the positions of the factors among the operator's arguments.
    """

    batch: int
    m: int
    k: int
    n: int
    left: int
    right: int

    @property
    def flops(self) -> int:
        """Number of floating-point operations, 2 b m k n (a multiplication and an addition count as two). Bias and
        scale are not counted."""
        return 2 * self.batch * self.m * self.k * self.n


def product_of(operator: str, dims: Sequence[Any]) -> Product | None:
    """Returns the matrix multiplication of an operator; None for other operators, or if the shapes do not match."""
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
    """Returns the product of linear(input, weight): each row of the input times the transposed weight.

    None if the shapes do not match. The operator is often a wrapper around addmm.
    """
    a, b = shape_at(dims, 0), shape_at(dims, 1)
    if not a or not b or len(b) != 2 or a[-1] != b[1]:
        return None
    return Product(1, math.prod(a[:-1]), a[-1], b[0], 0, 1)


class Convolution(Record, frozen=True):
    """A convolution (forward pass), or the gradients of a convolution (backward pass).

    `passes` is the number of gradients, or 1 for the forward pass. `source`, `kernel` and `result` are the shapes of
    input, weight and output. With groups, the weight has fewer input channels, so the formulas need no number of
    groups. In a transposed convolution, each position of the input (otherwise, of the output) is combined with the
    whole weight.
    """

    source: Shape
    kernel: Shape
    result: Shape
    transposed: bool
    passes: int = 1

    @property
    def flops(self) -> int:
        """Number of floating-point operations: 2 N prod(positions) prod(weight) per pass, where the positions are those
        of the output, or of the input if transposed. This is for direct computation; Winograd and Fourier kernels need
        fewer operations."""
        places = self.source[2:] if self.transposed else self.result[2:]
        return self.passes * 2 * self.source[0] * math.prod(places) * math.prod(self.kernel)

    @property
    def elements(self) -> int:
        """Minimum number of elements that are read or written: input, weight and output, once in each pass."""
        return self.passes * (math.prod(self.source) + math.prod(self.kernel) + math.prod(self.result))


class _ConvolutionArgs(Record, frozen=True):
    """Positions of the non-tensor arguments of a forward operator (native_functions.yaml)."""

    stride: int
    padding: int
    dilation: int | None
    transposed: int | bool = False  # position of the flag, or its fixed value
    output_padding: int | None = None
    groups: int | None = None


_FORWARD = {
    "aten::convolution": _ConvolutionArgs(3, 4, 5, 6, 7, 8),
    "aten::_convolution": _ConvolutionArgs(3, 4, 5, 6, 7, 8),
    "aten::cudnn_convolution": _ConvolutionArgs(3, 2, 4),
    "aten::cudnn_convolution_relu": _ConvolutionArgs(3, 4, 5),
    "aten::cudnn_convolution_add_relu": _ConvolutionArgs(5, 6, 7),
    "aten::miopen_convolution": _ConvolutionArgs(4, 3, 5),
    "aten::miopen_depthwise_convolution": _ConvolutionArgs(4, 3, 5),
    "aten::mkldnn_convolution": _ConvolutionArgs(4, 3, 5),
    "aten::_conv_depthwise2d": _ConvolutionArgs(4, 5, 6),
    "aten::conv_depthwise3d": _ConvolutionArgs(4, 5, 6),
    "aten::_slow_conv2d_forward": _ConvolutionArgs(4, 5, None),
    "aten::slow_conv_dilated2d": _ConvolutionArgs(4, 5, 6),
    "aten::cudnn_convolution_transpose": _ConvolutionArgs(4, 2, 5, True, 3, 6),
    "aten::miopen_convolution_transpose": _ConvolutionArgs(5, 3, 6, True, 4, 7),
}
# Operators of torch before 1.11 with the arguments (sizes of the input, gradient of the output, weight). For the
# operators of the weight's gradient, the shape of the weight is not recorded.
INPUT_GRADIENTS = ("aten::cudnn_convolution_backward_input", "aten::miopen_convolution_backward_input")


def convolution_of(operator: str, dims: Sequence[Any], concrete: Sequence[Any]) -> Convolution | None:
    """Returns the convolution that `operator` computes; None for other operators, or if a shape or setting is unknown.

    `dims` and `concrete` are the recorded shapes and values of the operator's arguments.
    """
    if operator == "aten::convolution_backward":
        return _backward(dims, concrete)
    places = _FORWARD.get(operator)
    source, kernel = shape_at(dims, 0), shape_at(dims, 1)
    if places is None or source is None or kernel is None or len(source) != len(kernel) or len(source) < 3:
        return None
    flag = (places.transposed,) if isinstance(places.transposed, bool) else flags_at(concrete, places.transposed)
    if flag is None:
        return None
    result = _result(source, kernel, places, concrete, flag[0])
    return None if result is None else Convolution(source, kernel, result, flag[0])


def input_gradient_flops(operator: str, dims: Sequence[Any]) -> int | None:
    """Returns the floating-point operations of an operator in INPUT_GRADIENTS; None for other operators or unknown
    shapes."""
    gradient, kernel = shape_at(dims, 1), shape_at(dims, 2)
    if operator not in INPUT_GRADIENTS or not gradient or not kernel or len(gradient) != len(kernel):
        return None
    return 2 * gradient[0] * math.prod(gradient[2:]) * math.prod(kernel)


def _backward(dims: Sequence[Any], concrete: Sequence[Any]) -> Convolution | None:
    """Returns the gradients that convolution_backward computes; None if a shape or setting is not recorded.

    The arguments of this operator are the gradient of the output, input, weight, bias sizes, stride, padding, dilation,
    transposed, output_padding, groups and output_mask.
    """
    result, source, kernel = (shape_at(dims, index) for index in range(3))
    transposed, mask = flags_at(concrete, 7), flags_at(concrete, 10)
    if not result or not source or not kernel or not len(result) == len(source) == len(kernel) >= 3:
        return None
    if transposed is None or mask is None or len(mask) != 3:
        return None
    return Convolution(source, kernel, result, transposed[0], passes=mask[0] + mask[1])


def _result(
    source: Shape, kernel: Shape, places: _ConvolutionArgs, concrete: Sequence[Any], transposed: bool
) -> Shape | None:
    """Returns the shape of a convolution's output, by the formulas in torch's documentation of Conv2d and
    ConvTranspose2d. None if a setting was not recorded.

    `source` and `kernel` are the shapes of input and weight. `places` has the positions of the settings in `concrete`,
    the recorded values of the arguments."""
    rank = len(source) - 2
    stride = _each(numbers_at(concrete, places.stride), rank)
    padding = _each(numbers_at(concrete, places.padding), rank)
    dilation = (1,) * rank if places.dilation is None else _each(numbers_at(concrete, places.dilation), rank)
    if stride is None or padding is None or dilation is None or 0 in stride:
        return None
    settings = list(zip(source[2:], kernel[2:], stride, padding, dilation, strict=True))
    if not transposed:
        sizes = tuple((x + 2 * p - d * (k - 1) - 1) // s + 1 for x, k, s, p, d in settings)
        return (source[0], kernel[0], *sizes) if all(size > 0 for size in sizes) else None
    extra, groups = _each(numbers_at(concrete, places.output_padding), rank), numbers_at(concrete, places.groups)
    if extra is None or groups is None or len(groups) != 1:
        return None
    sizes = tuple((x - 1) * s - 2 * p + d * (k - 1) + o + 1 for (x, k, s, p, d), o in zip(settings, extra, strict=True))
    return (source[0], kernel[1] * groups[0], *sizes) if all(size > 0 for size in sizes) else None


def _each(numbers: Shape | None, rank: int) -> Shape | None:
    """Returns `numbers` as `rank` numbers, one per dimension. A single number applies to all dimensions.

    None if `numbers` is None or has another length.
    """
    if numbers is None or len(numbers) not in (1, rank):
        return None
    return numbers * rank if len(numbers) == 1 else numbers
