"""Strangers' names and values, made fit for a terminal."""

MAX_VALUE_LENGTH = 160  # characters of a value that is shown
MAX_INTEGER = 2**63  # of a whole number; beyond it there is nothing that a run could mean


def sanitize(value: object, longest: int = MAX_VALUE_LENGTH) -> str:
    """One line without control characters, kept by its beginning."""
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        return "a number beyond any"
    text = str(value)
    shown = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(one if one.isprintable() else " " for one in shown)
