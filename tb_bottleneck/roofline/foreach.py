"""Operators on lists of tensors: concatenation, foreach, and fused optimizers."""

from tb_bottleneck.roofline.operator_args import OperatorArguments

_LIST = "TensorList"
_ONLY_READ = ("aten::_foreach_norm", "aten::_foreach_max")
_GRADIENTS = 1  # position of the gradients in fused optimizers; this list is read but not written


def list_bytes(operator: str, arguments: OperatorArguments) -> int | None:
    """Returns the bytes moved by an operator on lists; None for other operators, or if the element size is unknown.

    For fused Adam, these are seven passes over the parameters (it reads p, g, m, v and writes p, m, v); for plain SGD
    three, and for SGD with momentum five.
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
