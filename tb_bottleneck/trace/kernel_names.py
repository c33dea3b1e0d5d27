"""Names of kernels and operators: shortened, and the rows of a table whose names match.

Selects rows by a test of their names. Each name is tested once, and only if it occurs.

Shortens kernel names for display: no return and argument types, limited length.
"""

import re
from collections.abc import Callable

import numpy as np

from tb_bottleneck.trace.table import Bools, Ints


def passing_names(names: tuple[str, ...], column: Ints, test: Callable[[str], bool]) -> Bools:
    """Returns a mask of the names that occur in `column`, as rows of `names`, and pass the test."""
    occurs, passes = np.zeros(len(names), np.bool_), np.zeros(len(names), np.bool_)
    occurs[column] = True
    for name in np.flatnonzero(occurs).tolist():
        passes[name] = test(names[name])
    return passes


def name_matches(names: tuple[str, ...], column: Ints, test: Callable[[str], bool]) -> Bools:
    """Returns a mask of the rows with a name that passes the test. The values of `column` are rows of `names`."""
    return np.asarray(passing_names(names, column, test)[column], np.bool_)


LONGEST = 160
_NAMESPACE = re.compile(r"(?:\w+|\(anonymous namespace\))::(?=\w|\()")
_INNERMOST = re.compile(r"<[^<>]*>")
_EMPTY = "\0"  # brackets that are empty already
_ELLIPSIS = "..."


def short(name: str, longest: int = LONGEST) -> str:
    """Returns the name without the return type `void` and without the argument types that C++ appends in parentheses.

    A name longer than `longest` loses its namespaces, then its innermost template arguments, then its end.
    """
    shown = (name[: _opening(name)].rstrip() if name.endswith(")") else name) or name
    shown = shown.removeprefix("void ")
    if len(shown) > longest:
        shown = _without_arguments(_NAMESPACE.sub("", shown), longest)
    return cut(shown, longest)


def cut(name: str, longest: int = LONGEST) -> str:
    """Returns the name, limited to `longest` characters: names in a file can have any length."""
    return name if len(name) <= longest else name[: longest - len(_ELLIPSIS)] + _ELLIPSIS


def _without_arguments(name: str, longest: int) -> str:
    """Empties template arguments inside others, the innermost and last first, until the name is short enough."""
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
