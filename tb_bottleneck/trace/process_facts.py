"""Numbers that the training process told with the trace: a stranger's word, so each is looked at before it is used."""

import re
from math import isfinite
from typing import Any

# The reader keeps numbers of many digits as they stand in the file.
_WRITTEN = re.compile(r"\d{1,20}(?:\.\d{1,20})?")


def positive(value: Any) -> float | None:
    """A positive finite number, else None; truth values are none."""
    if isinstance(value, str) and _WRITTEN.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) and number > 0 else None
