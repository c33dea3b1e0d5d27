"""Names of kernels and operators: selects the rows whose names pass a test, and shortens names for display.

Each distinct name is tested only once, and only if it occurs in the rows.
"""

import re
from collections.abc import Callable

import numpy as np

from tb_bottleneck.trace.table import Bools, Ints


def passing_names(names: tuple[str, ...], column: Ints, test: Callable[[str], bool]) -> Bools:
    """Returns a mask of `names`: True for names that occur in `column` and pass `test`.

    `column` has indices into `names`.
    """
    occurs, passes = np.zeros(len(names), np.bool_), np.zeros(len(names), np.bool_)
    occurs[column] = True
    for name in np.flatnonzero(occurs).tolist():
        passes[name] = test(names[name])
    return passes


def name_matches(names: tuple[str, ...], column: Ints, test: Callable[[str], bool]) -> Bools:
    """Returns a mask of `column`, which has indices into `names`: True for elements whose name passes `test`."""
    return np.asarray(passing_names(names, column, test)[column], np.bool_)


LONGEST = 160
_NAMESPACE = re.compile(r"(?:\w+|\(anonymous namespace\))::(?=\w|\()")
_INNERMOST = re.compile(r"<[^<>]*>")
_EMPTY = "\0"  # brackets that are empty already
_ELLIPSIS = "..."


def short(name: str, longest: int = LONGEST) -> str:
    """Returns the name of a kernel or operator, shortened for display.

    The return type `void` and the argument types in parentheses at the end of a C++ name are removed. If the name is
    still longer than `longest` characters, namespaces are removed, then the innermost template arguments, then the end.
    """
    shown = (name[: _opening(name)].rstrip() if name.endswith(")") else name) or name
    shown = shown.removeprefix("void ")
    if len(shown) > longest:
        shown = _without_arguments(_NAMESPACE.sub("", shown), longest)
    return cut(shown, longest)


def cut(name: str, longest: int = LONGEST) -> str:
    """Returns `name`, limited to `longest` characters. The end of a longer name is replaced by "..."."""
    return name if len(name) <= longest else name[: longest - len(_ELLIPSIS)] + _ELLIPSIS


def _without_arguments(name: str, longest: int) -> str:
    """Returns `name` with template argument lists replaced by `<>`, until it has at most `longest` characters.

    Only lists inside other lists are replaced, starting with the innermost and last ones.
    """
    left, before = name, ""
    while len(left) > longest and left != before:
        before = left
        for found in reversed([*_INNERMOST.finditer(before)]):
            if len(left) > longest and "<" in before[: found.start()]:
                left = f"{left[: found.start()]}{_EMPTY}{left[found.end() :]}"
    return left.replace(_EMPTY, "<>")


def _opening(name: str) -> int:
    """Returns the position of the "(" that belongs to the ")" at the end of `name`, or len(name) if there is none."""
    depth = 0
    for position in range(len(name) - 1, -1, -1):
        depth += (name[position] == ")") - (name[position] == "(")
        if depth == 0:
            return position
    return len(name)
