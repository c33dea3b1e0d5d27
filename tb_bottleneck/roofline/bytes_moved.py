"""Minimum number of bytes that an operator moves through device memory, from recorded shapes and types."""

import re
from collections.abc import Callable, Sequence
from typing import Any

from tb_bottleneck.roofline.attention import attention_of
from tb_bottleneck.roofline.matmul import Product, convolution_of, product_of
from tb_bottleneck.roofline.operator_args import (
    DTYPE_ITEMSIZES,
    OperatorArguments,
    flags_at,
    itemsize,
    numbers_at,
    shape_at,
)
from tb_bottleneck.roofline.pointwise import list_bytes, pointwise_bytes, reduction_bytes

# Passes over complete tensors, as tuples (position of an argument, number of times it is read or written). A result is
# counted as a pass over an argument of the same size. The passes are those of torch's own kernels, which keep a row,
# but not a whole tensor, on the chip.
_PASSES: dict[str, tuple[tuple[int, int], ...]] = {
    "aten::copy_": ((0, 1), (1, 1)),
    **dict.fromkeys(
        ("aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_", "aten::bernoulli_", "aten::exponential_"),
        ((0, 1),),
    ),
    "aten::native_layer_norm": ((0, 2), (2, 1), (3, 1)),
    "aten::native_layer_norm_backward": ((0, 2), (1, 1), (3, 1), (4, 1), (5, 2), (6, 1)),
    "aten::_fused_rms_norm": ((0, 2), (2, 1)),
    "aten::_fused_rms_norm_backward": ((0, 2), (1, 1), (3, 1), (4, 2)),
    "aten::native_group_norm": ((0, 2), (1, 1), (2, 1)),
    "aten::native_group_norm_backward": ((0, 2), (1, 1), (2, 1), (3, 1), (4, 3)),
    "aten::cudnn_batch_norm_backward": ((0, 2), (1, 3)),
    "aten::miopen_batch_norm_backward": ((0, 2), (1, 3)),
    "aten::native_batch_norm_backward": ((0, 3), (1, 2)),
    "aten::batch_norm_backward": ((0, 3), (1, 2)),
    "aten::_softmax_backward_data": ((0, 2), (1, 1)),
    "aten::_log_softmax_backward_data": ((0, 2), (1, 1)),
    "aten::native_dropout_backward": ((0, 2), (1, 1)),
    "aten::_masked_scale": ((0, 2), (1, 1)),
    # This operator sorts the indices, and adds to rows of the result that a separate fill_ has set to 0.
    "aten::embedding_dense_backward": ((0, 3), (1, 1)),
}
# Inductor's pointwise, reduction and persistent-reduction kernels record their buffers as arguments: each buffer is
# moved at least once, unless only a part of it is read.
_GENERATED = ("triton_poi_", "triton_red_", "triton_per_")
_BATCH_NORMS = (
    "aten::cudnn_batch_norm",
    "aten::miopen_batch_norm",
    "aten::native_batch_norm",
    "aten::_native_batch_norm_legit",
)
_TRAINING_ARGUMENT = 5  # position of the flag in batch norms


def bytes_moved(
    operator: str, dims: Sequence[Any], types: Sequence[str], concrete: Sequence[Any], list_itemsize: int | None = None
) -> int | None:
    """Returns the bytes read and written with minimal memory traffic; None if a shape or type is unknown.

    `dims`, `types` and `concrete` are "Input Dims", "Input type" and "Concrete Inputs" of the innermost operator, with
    one element per argument of the operator.

    `list_itemsize` is the size in bytes of an element of tensors in lists. Traces do not contain the type of these
    tensors, but `list_itemsize_in` finds it in the name of a kernel. If it is None, the result is None for operators on
    lists of tensors.

    The bytes are those of the whole operator. If the operator launches several kernels, compare with the total time of
    the kernels. The actual traffic can be higher (cache misses, changed layouts). It is lower only if data are in the
    cache.
    """
    arguments = OperatorArguments(dims, types, concrete, list_itemsize)
    if operator in _PASSES:
        return _passes(_PASSES[operator], arguments)
    if operator in _SPECIAL:
        return _SPECIAL[operator](arguments)
    if operator.startswith(_GENERATED):
        return _sum(arguments.bytes(index) for index in range(len(dims))) or None
    for count in (_contraction_bytes, list_bytes, reduction_bytes, pointwise_bytes):
        size = count(operator, arguments)
        if size is not None:
            return size
    return None


def list_itemsize_in(kernel_name: str) -> int | None:
    """Returns the element size in bytes of the tensors in lists (cat, foreach, fused optimizers) from a kernel's name.

    None if the name does not contain the type of the tensors.
    """
    match = _LIST_TYPE.search(kernel_name[:2000])
    if match is None:
        return None
    return int(match["bytes"]) if match["bytes"] else itemsize(match["type"])


# at::native::CatArrayBatchedCopy<at::native::...OpaqueType<2u>, ...>, at::native::...AddFunctor<float, ...>. The
# first template argument of a foreach functor is the type of the tensors.
_LIST_TYPE = re.compile(
    r"(?:CatArrayBatched|multi_tensor_apply).*?<(?:[\w: ()]*OpaqueType<(?P<bytes>\d+)u?>"
    r"|(?P<type>float|double|c10::Half|c10::BFloat16|long|int|bool)\b)"
)


def _passes(passes: tuple[tuple[int, int], ...], arguments: OperatorArguments) -> int | None:
    sizes = [(arguments.bytes(index), times) for index, times in passes]
    return None if not sizes[0][0] else _sum(None if size is None else size * times for size, times in sizes)


def _sum(parts: Any) -> int | None:
    whole = list(parts)
    return None if None in whole else sum(whole)


def _contraction_bytes(operator: str, arguments: OperatorArguments) -> int | None:
    """Returns the bytes of a matrix product, convolution or attention: each input and the result count once.

    None for other operators, or if a type is unknown.
    """
    product = product_of(operator, arguments.dims)
    if product is not None:
        return _product_bytes(operator, product, arguments)
    convolution = convolution_of(operator, arguments.dims, arguments.concrete)
    attention = attention_of(operator, arguments.dims, arguments.concrete)
    if convolution is not None:
        size = itemsize(arguments.type_at(0))
        return None if size is None else convolution.elements * size
    if attention is not None:
        size = itemsize(arguments.type_at(attention.query))
        return None if size is None else attention.elements * size
    return None


def _product_bytes(operator: str, product: Product, arguments: OperatorArguments) -> int | None:
    """Returns the bytes of both factors, the result, and the added tensor if there is one; None if a type is
    unknown."""
    left, right = (arguments.bytes(index) for index in (product.left, product.right))
    dtype = numbers_at(arguments.concrete, {"aten::_scaled_mm": 6, "aten::mm": 2, "aten::bmm": 2}.get(operator))
    size = itemsize(arguments.type_at(product.left))
    if dtype is not None and len(dtype) == 1:
        size = DTYPE_ITEMSIZES.get(dtype[0])
    added = arguments.bytes(0) if product.left == 1 else 0
    if left is None or right is None or size is None or added is None:
        return None
    return left + right + added + product.batch * product.m * product.n * size


def _softmax(arguments: OperatorArguments) -> int | None:
    """Returns the bytes of input and output of a softmax.

    If the third argument is True, the input has half precision and the output the type float.
    """
    size, elements, widened = arguments.bytes(0), arguments.elements(0), flags_at(arguments.concrete, 2)
    if not size or elements is None:
        return None
    return size + (4 * elements if widened == (True,) else size)


def _dropout(arguments: OperatorArguments) -> int | None:
    """Returns the bytes of input, output, and mask (one byte per element) of a dropout."""
    size, elements = arguments.bytes(0), arguments.elements(0)
    return None if not size or elements is None else 2 * size + elements


def _batch_norm(arguments: OperatorArguments) -> int | None:
    """Returns the bytes that a batch norm moves. Training reads the input twice, for the statistics and to apply them;
    evaluation reads it once."""
    size, training = arguments.bytes(0), flags_at(arguments.concrete, _TRAINING_ARGUMENT)
    return None if not size or training is None else size * (3 if training[0] else 2)


def _embedding(arguments: OperatorArguments) -> int | None:
    """Returns the bytes that an embedding moves: the table rows that are looked up (read and written), and the
    indices."""
    table, size = shape_at(arguments.dims, 0), itemsize(arguments.type_at(0))
    count, indices = arguments.elements(1), arguments.bytes(1)
    if not table or len(table) != 2 or size is None or count is None or indices is None:
        return None
    return 2 * count * table[1] * size + indices


def _index_select(arguments: OperatorArguments) -> int | None:
    """Returns the bytes of index_select(self, dim, index): the selected slices (read and written), and the indices."""
    shape, whole, dim = shape_at(arguments.dims, 0), arguments.bytes(0), numbers_at(arguments.concrete, 1)
    count, indices = arguments.elements(2), arguments.bytes(2)
    if not shape or not whole or not dim or count is None or indices is None or not -len(shape) <= dim[0] < len(shape):
        return None
    return 2 * (whole // shape[dim[0]]) * count + indices


def _gather(arguments: OperatorArguments) -> int | None:
    """Returns the bytes of gather(self, dim, index): one element per index (read and written), and the indices."""
    count, indices, size = arguments.elements(2), arguments.bytes(2), itemsize(arguments.type_at(0))
    return None if count is None or not indices or size is None else 2 * count * size + indices


def _nll_loss(target: int) -> Callable[[OperatorArguments], int | None]:
    """Returns a function that returns the bytes of a negative log-likelihood loss: one element per target, and the
    targets. (The log-softmax before the loss moves the whole tensor.) `target` is the position of the targets among the
    operator's arguments."""

    def count(arguments: OperatorArguments) -> int | None:
        elements, targets = arguments.elements(target), arguments.bytes(target)
        size = itemsize(arguments.type_at(target - 1))
        return None if elements is None or not targets or size is None else elements * size + targets

    return count


_SPECIAL: dict[str, Callable[[OperatorArguments], int | None]] = {
    "aten::_softmax": _softmax,
    "aten::_log_softmax": _softmax,
    "aten::native_dropout": _dropout,
    "aten::_fused_dropout": _dropout,
    **dict.fromkeys(_BATCH_NORMS, _batch_norm),
    "aten::embedding": _embedding,
    "aten::index_select": _index_select,
    "aten::gather": _gather,
    "aten::nll_loss_forward": _nll_loss(1),
    "aten::nll_loss_backward": _nll_loss(2),
}
