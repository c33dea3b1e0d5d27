"""Shortens mangled C++ names of kernels to the identifiers in them.

CUPTI leaves long names mangled, and Kineto on Windows leaves all names mangled. In the Itanium C++ ABI, each identifier
stands behind its length (5.1, External names; https://itanium-cxx-abi.github.io/cxx-abi/abi.html#mangling).
"""

import re

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
