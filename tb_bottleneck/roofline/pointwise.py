"""Computes the minimum memory traffic in bytes of pointwise operators, reductions and operators on lists of tensors."""

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from tb_bottleneck.roofline.operator_args import OperatorArguments, Shape, is_list, itemsize, numbers_at, shape_at

_LIST = "TensorList"
_ONLY_READ = ("aten::_foreach_norm", "aten::_foreach_max")
_GRADIENTS = 1  # position of the list of gradients in fused optimizers, which is read but not written


def list_bytes(operator: str, arguments: OperatorArguments) -> int | None:
    """Returns the minimum bytes moved by an operator on lists of tensors: concatenation, foreach, fused optimizers.

    None for other operators, or if the element size is unknown. A fused Adam moves seven times the bytes of the
    parameters (reads parameters, gradients and both moments, and writes all but the gradients), plain SGD three times,
    and SGD with momentum five times.
    """
    lists = {index: arguments.list_bytes(index) for index, name in enumerate(arguments.types) if name == _LIST}
    known_sizes = {index: size for index, size in lists.items() if size is not None}
    if not known_sizes or len(known_sizes) != len(lists) or not known_sizes.get(0):
        return None
    read = sum(known_sizes.values())
    if operator in ("aten::cat", "aten::stack"):
        return 2 * read
    if operator == "aten::_foreach_zero_" or operator in _ONLY_READ or operator == "aten::_foreach_copy_":
        return read
    if operator.startswith("aten::_fused_"):
        return read + sum(size for index, size in known_sizes.items() if index != _GRADIENTS)
    if operator.startswith(("aten::_foreach_", "aten::_amp_foreach_")):
        return read + known_sizes[0]
    return None


# Operators that reduce over one dimension, which is recorded as a single number. The others record a list of reduced
# dimensions such as "[0, 1]"; for them, a single number is a dtype.
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
    """Returns the bytes of input and output of a reduction; None for other operators or unknown dimensions.

    A reduction reads the input once and writes the result. The result is assumed to have the type of the input. If this
    is wrong, the error is small, because the result is usually small.
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
    """Returns the dimensions over which an operator reduces; () means all. `at` is the position of the argument with
    the dimensions in `concrete`."""
    text = concrete[at] if at < len(concrete) else ""
    if not isinstance(text, str) or not (is_list(text) or operator in _ONE_DIMENSION):
        return ()
    return numbers_at(concrete, at) or ()


def _remaining(shape: Shape, reduced: Shape) -> int | None:
    """Returns the number of elements after a reduction of `shape` over the dimensions `reduced`; None if a dimension is
    out of range."""
    if any(not -len(shape) <= dim < len(shape) for dim in reduced):
        return None
    if not reduced:
        return 1
    removed = {dim % len(shape) for dim in reduced}
    return math.prod(size for dim, size in enumerate(shape) if dim not in removed)


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Operators with one, two or three arguments that may be tensors (native_functions.yaml). A further tensor is out=.
_UNARY = _names(
    """abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal square sin cos tan tanh sinh cosh asin acos
    atan erf erfc erfinv sigmoid logit relu relu6 gelu silu mish elu celu selu hardtanh hardsigmoid hardswish leaky_relu
    softplus log_sigmoid_forward threshold floor ceil round trunc frac sign sgn bitwise_not logical_not isnan isinf
    isfinite nan_to_num tril triu cumsum cumprod"""
)
_BINARY = _names(
    """add sub rsub mul div pow atan2 fmod remainder floor_divide maximum minimum fmax fmin hypot clamp_min clamp_max
    eq ne lt le gt ge logical_and logical_or logical_xor bitwise_and bitwise_or bitwise_xor __and__ __or__ __xor__ max
    min masked_fill threshold_backward gelu_backward silu_backward sigmoid_backward tanh_backward elu_backward
    hardtanh_backward hardsigmoid_backward hardswish_backward leaky_relu_backward mish_backward softplus_backward
    xlogy prelu"""
)
_TERNARY = _names("addcmul addcdiv lerp clamp where")
_ARITY = {**dict.fromkeys(_UNARY, 1), **dict.fromkeys(_BINARY, 2), **dict.fromkeys(_TERNARY, 3)}
_TO_BOOL = _names("eq ne lt le gt ge logical_and logical_or logical_xor logical_not isnan isinf isfinite")
# These convert integers to floating point, in torch's default type.
_TO_FLOAT = _names(
    """div exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan tanh sinh cosh asin acos atan atan2 erf
    erfc erfinv sigmoid logit"""
)
_DEFAULT_FLOAT = "float"


def pointwise_bytes(operator: str, arguments: OperatorArguments) -> int | None:
    """Returns the minimum bytes moved by a pointwise operator; None for other operators or unknown types or shapes.

    A pointwise operator reads each input once, also if the input is broadcast, and writes one output. A tensor that was
    expanded before the call is recorded with the expanded shape, so all elements of this shape count.
    """
    plain = operator.removeprefix("aten::")
    in_place = plain.endswith("_") and not plain.endswith("__")
    name = plain.removesuffix("_") if in_place else plain
    arity = _ARITY.get(name)
    if arity is None or (name in ("max", "min") and not shape_at(arguments.dims, 1)):
        return None  # max and min of one tensor are reductions
    read = [_tensor(arguments, index) for index in range(min(arity, len(arguments.dims)))]
    tensors = [tensor for tensor in read if tensor is not None]
    if not tensors or any(itemsize(type_name) is None for _, type_name in tensors):
        return None
    written = tensors[0] if in_place else _result(name, tensors)
    return None if written is None else sum(_bytes(*tensor) for tensor in [*tensors, written])


def _tensor(arguments: OperatorArguments, index: int) -> tuple[Shape, str] | None:
    """Returns the shape and the type of the argument at `index` if it is a tensor; otherwise None."""
    shape, type_name = shape_at(arguments.dims, index), arguments.type_at(index)
    if shape is None or (shape == () and itemsize(type_name) is None):
        return None
    return shape, type_name


def _bytes(shape: Shape, type_name: str) -> int:
    return math.prod(shape) * (itemsize(type_name) or 0)


def _result(name: str, tensors: list[tuple[Shape, str]]) -> tuple[Shape, str] | None:
    shape = broadcast([shape for shape, _ in tensors])
    if shape is None:
        return None
    if name in _TO_BOOL:
        return shape, "bool"
    valued = tensors[1:] if name == "where" and len(tensors) > 1 else tensors
    type_name = promote_types(valued)
    return shape, _DEFAULT_FLOAT if name in _TO_FLOAT and _category(type_name) < 2 else type_name


def broadcast(shapes: list[Shape]) -> Shape | None:
    """Returns the shape that results from broadcasting `shapes` together; None if they do not match."""
    sizes = []
    for column in zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1):
        wide = {size for size in column if size != 1}
        if len(wide) > 1:
            return None
        sizes.append(wide.pop() if wide else 1)
    return tuple(reversed(sizes))


def promote_types(tensors: list[tuple[Shape, str]]) -> str:
    """Returns the common type of `tensors`, which are pairs of a shape and a type, by torch's rules of type promotion.

    A tensor without dimensions counts only if its category is higher than that of all tensors with dimensions. The
    categories are bool, integer, floating-point and complex, from the lowest to the highest.
    """
    ranked = [type_name for shape, type_name in tensors if shape]
    scalars = [type_name for shape, type_name in tensors if not shape]
    if not ranked:
        return _widest(scalars)
    widest = _widest(ranked)
    raised = [type_name for type_name in scalars if _category(type_name) > _category(widest)]
    if not raised:
        return widest
    return _DEFAULT_FLOAT if _category(_widest(raised)) == 2 else _widest(raised)


def _widest(types: list[str]) -> str:
    best = max(types, key=lambda type_name: (_category(type_name), itemsize(type_name) or 0))
    mixed = {"c10::Half", "c10::BFloat16"} <= set(types)
    return _DEFAULT_FLOAT if mixed and itemsize(best) == 2 else best


def _category(type_name: str) -> int:
    if type_name == "bool":
        return 0
    if "complex" in type_name:
        return 3
    return 2 if type_name in ("float", "double") or type_name.startswith(("c10::Half", "c10::BF", "c10::Fl")) else 1
