"""Names of kernels and operators: selects the rows whose names pass a test, and shortens names for display.

Each distinct name is tested only once, and only if it occurs in the rows.

Shortens mangled C++ names of kernels to the identifiers in them.

CUPTI leaves long names mangled, and Kineto on Windows leaves all names mangled. In the Itanium C++ ABI, each identifier
stands behind its length (5.1, External names; https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling).
"""

import re
from collections.abc import Callable

import numpy as np

from tb_bottleneck.trace.table import Bools, Ints

# A number; the beginning of an enumerator, and its value; a lambda's number, a substitution, a template parameter, the
# length of an array or a vector; a type of half precision; or the length of an identifier.
_TOKEN = re.compile(
    r"L[a-z](?P<number>n?\d+)E|(?P<enumerator>LN)|E(?P<value>n?\d+)E|E\d*_|S(?:[0-9A-Z]*_|[a-z])|T\d*_|Dv\d+|A\d+_"
    r"|(?P<half>DF16b|DF16_|Dh)|(?P<length>[1-9]\d{0,3})(?=[A-Za-z_])"
)
_HALF_PRECISION = {"DF16b": "bfloat16", "DF16_": "_Float16", "Dh": "_Float16"}
_ANONYMOUS = "_GLOBAL__N_"


def identifiers(name: str) -> str:
    """Returns the identifiers of a mangled name as FUNCTION<OTHERS>, or `name` itself if it is not mangled.

    FUNCTION is the name with its namespaces. OTHERS are the further identifiers and numbers, without builtin types such
    as `float`. The last identifier of a name that was cut off ends with "...".
    """
    if not name.startswith("_Z"):
        return name
    groups: list[list[str]] = []
    at, end_of_last, in_enumerator = 2, -1, False
    while token := _TOKEN.search(name, at):
        at = token.end()
        if token["enumerator"]:
            in_enumerator = True
        elif token["value"] and not in_enumerator:  # the end of something, before a number of letters
            at = token.start() + 1
        elif number := token["number"] or token["value"]:
            groups.append([number.replace("n", "-")])
            in_enumerator = False
        elif token["half"]:
            groups.append([_HALF_PRECISION[token["half"]]])
        elif token["length"]:
            at += int(token["length"])
            text = name[token.end() : at] + "..." * (at > len(name))
            if token.start() != end_of_last:
                groups.append([])
            groups[-1].append("(anonymous namespace)" if text.startswith(_ANONYMOUS) else text)
            end_of_last = at
    function, *others = ("::".join(group) for group in groups) if groups else (name,)
    return f"{function}<{', '.join(others)}>" if others else function


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
