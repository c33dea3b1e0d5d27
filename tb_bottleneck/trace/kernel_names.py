"""Shortens kernel names for display: no argument types, limited length."""

LONGEST = 160


def short(name: str) -> str:
    """Returns the name without the argument types that C++ appends in parentheses."""
    return cut((name[: _opening(name)].rstrip() if name.endswith(")") else name) or name)


def cut(name: str) -> str:
    """Returns the name, limited to LONGEST characters: names in a file can have any length."""
    return name if len(name) <= LONGEST else name[: LONGEST - 3] + "..."


def _opening(name: str) -> int:
    """Returns the position of the parenthesis that the last character closes, or the length of the name."""
    depth = 0
    for position in range(len(name) - 1, -1, -1):
        depth += (name[position] == ")") - (name[position] == "(")
        if depth == 0:
            return position
    return len(name)
