"""Names of kernels and operators: selects the rows whose names pass a test, and shortens names for display.

Each name is tested at most once, and only if it occurs in the rows.
"""

import re
from collections.abc import Callable

import numpy as np

from tb_bottleneck.trace.table import Bools, Ints


def passing_names(names: tuple[str, ...], column: Ints, test: Callable[[str], bool]) -> Bools:
    """Returns a mask of `names`: True for the names that occur in `column` (rows of `names`) and pass `test`."""
    occurs, passes = np.zeros(len(names), np.bool_), np.zeros(len(names), np.bool_)
    occurs[column] = True
    for name in np.flatnonzero(occurs).tolist():
        passes[name] = test(names[name])
    return passes


def name_matches(names: tuple[str, ...], column: Ints, test: Callable[[str], bool]) -> Bools:
    """Returns a mask of the entries of `column` (rows of `names`): True for entries whose name passes `test`."""
    return np.asarray(passing_names(names, column, test)[column], np.bool_)


LONGEST = 160
_NAMESPACE = re.compile(r"(?:\w+|\(anonymous namespace\))::(?=\w|\()")
_INNERMOST = re.compile(r"<[^<>]*>")
_EMPTY = "\0"  # brackets that are empty already
_ELLIPSIS = "..."


def short(name: str, longest: int = LONGEST) -> str:
    """Returns the name of a kernel or operator without the return type `void` and without the argument types that C++
    appends in parentheses.

    A name longer than `longest` loses its namespaces, then its innermost template arguments, then its end."""
    shown = (name[: _opening(name)].rstrip() if name.endswith(")") else name) or name
    shown = shown.removeprefix("void ")
    if len(shown) > longest:
        shown = _without_arguments(_NAMESPACE.sub("", shown), longest)
    return cut(shown, longest)


def cut(name: str, longest: int = LONGEST) -> str:
    """Returns the name, limited to `longest` characters; the end of a longer name is replaced by "..."."""
    return name if len(name) <= longest else name[: longest - len(_ELLIPSIS)] + _ELLIPSIS


def _without_arguments(name: str, longest: int) -> str:
    """Returns `name` with emptied template arguments inside other template arguments: the innermost and last ones
    first, until the name has at most `longest` characters."""
    left, before = name, ""
    while len(left) > longest and left != before:
        before = left
        for found in reversed([*_INNERMOST.finditer(before)]):
            if len(left) > longest and "<" in before[: found.start()]:
                left = f"{left[: found.start()]}{_EMPTY}{left[found.end() :]}"
    return left.replace(_EMPTY, "<>")


def _opening(name: str) -> int:
    """Returns the position of the parenthesis that the last character closes, or the length of the name."""
    depth = 0
    for position in range(len(name) - 1, -1, -1):
        depth += (name[position] == ")") - (name[position] == "(")
        if depth == 0:
            return position
    return len(name)
