"""Validates the untrusted numbers that the training process added to the trace."""

import re
from math import isfinite
from typing import Any

# The reader keeps numbers with many digits as text.
_WRITTEN = re.compile(r"\d{1,20}(?:\.\d{1,20})?")


def positive(value: Any) -> float | None:
    """Returns a positive finite number, or None. Booleans are not numbers."""
    if isinstance(value, str) and _WRITTEN.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if isfinite(number) and number > 0 else None
