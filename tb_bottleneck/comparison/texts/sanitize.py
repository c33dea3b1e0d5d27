"""Strangers' names and values, made fit for a terminal."""

LONGEST = 160  # characters of a value that is shown
LARGEST = 2**63  # of a whole number; beyond it there is nothing that a run could mean


def printable(value: object, longest: int = LONGEST) -> str:
    """One line without control characters, kept by its beginning."""
    if isinstance(value, int) and abs(value) > LARGEST:
        return "a number beyond any"
    text = str(value)
    shown = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(one if one.isprintable() else " " for one in shown)
