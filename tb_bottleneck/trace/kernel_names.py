"""Kernel names as people want to read them: without the list of their arguments' types, and not too long."""

LONGEST = 160


def short(name: str) -> str:
    """The name without the types of its arguments, which C++ writes behind it in parentheses."""
    return cut((name[: _opening(name)].rstrip() if name.endswith(")") else name) or name)


def cut(name: str) -> str:
    """The name, not too long: a stranger's file may give one any length."""
    return name if len(name) <= LONGEST else name[: LONGEST - 3] + "..."


def _opening(name: str) -> int:
    """Where the parenthesis begins that the last character closes; the whole length where nothing opens it."""
    depth = 0
    for place in range(len(name) - 1, -1, -1):
        depth += (name[place] == ")") - (name[place] == "(")
        if depth == 0:
            return place
    return len(name)
