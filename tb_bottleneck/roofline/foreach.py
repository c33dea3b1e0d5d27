"""Operators on lists of tensors: concatenation, foreach, and fused optimizers."""

from tb_bottleneck.roofline.operator_args import Arguments

_LIST = "TensorList"
_ONLY_READ = ("aten::_foreach_norm", "aten::_foreach_max")
_GRADIENTS = 1  # where fused optimizers have the gradients, the one list that they only read


def list_bytes(operator: str, arguments: Arguments) -> int | None:
    """Bytes that an operator on lists moves; None where it is none, or where the size of the elements is not known.

    Fused Adam so comes to seven passes over the parameters (it reads p, g, m, v and writes p, m, v), plain SGD to three
    and SGD with momentum to five.
    """
    lists = {index: arguments.list_bytes(index) for index, name in enumerate(arguments.types) if name == _LIST}
    known = {index: size for index, size in lists.items() if size is not None}
    if not known or len(known) != len(lists) or not known.get(0):
        return None
    read = sum(known.values())
    if operator in ("aten::cat", "aten::stack"):
        return 2 * read
    if operator == "aten::_foreach_zero_" or operator in _ONLY_READ or operator == "aten::_foreach_copy_":
        return read
    if operator.startswith("aten::_fused_"):
        return read + sum(size for index, size in known.items() if index != _GRADIENTS)
    if operator.startswith(("aten::_foreach_", "aten::_amp_foreach_")):
        return read + known[0]
    return None
