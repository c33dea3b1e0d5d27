"""Columns as the lines of calls have them in a trace."""

import base64
import zlib

import numpy as np


def packed(numbers, form) -> str:
    """Returns the numbers as base64 of zlib of an array of this type."""
    return base64.b64encode(zlib.compress(np.array(numbers, form).tobytes())).decode()
