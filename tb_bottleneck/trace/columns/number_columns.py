"""Converts numbers as written in a trace (integers, floats, decimals, text, null) to int64 columns."""

from contextlib import suppress
from decimal import Decimal
from types import NoneType
from typing import Any

import numpy as np

from tb_bottleneck.base.units import NS_PER_US, us_to_ns
from tb_bottleneck.trace.table import Bools, Ints

# Larger times do not fit into int64 nanoseconds.
MAX_TIME_US = 9.2e15
# Larger values are not valid ids or sizes.
MAX_ID = 2**62
_PLAIN = {int, float, NoneType}
_NARROW = (np.iinfo(np.int8), np.iinfo(np.int16), np.iinfo(np.int32))


def times(values: list[Any]) -> tuple[Ints, Bools]:
    """Converts `values` from microseconds to nanoseconds. Returns the times and a mask of the usable values; the time
    of an unusable value is 0."""
    kinds = {*map(type, values)}
    if not kinds <= _PLAIN:
        return _exact_times(values)
    try:
        # Only np.array converts None to NaN; np.fromiter is three times as fast.
        us = np.array(values, np.float64) if NoneType in kinds else np.fromiter(values, np.float64)
    except OverflowError:
        return _exact_times(values)
    good = np.abs(us) < MAX_TIME_US  # False for NaN
    if not good.all():
        us = np.where(good, us, 0.0)
    # Split before scaling: microseconds since 1970 times 1000 exceed the integers that float64 can represent.
    whole = np.floor(us)
    return whole.astype(np.int64) * NS_PER_US + np.rint((us - whole) * NS_PER_US).astype(np.int64), good


def _exact_times(values: list[Any]) -> tuple[Ints, Bools]:
    pairs = [_exact_time(value) for value in values]
    return np.array([ns for ns, _ in pairs], np.int64), np.array([good for _, good in pairs], np.bool_)


def _exact_time(value: Any) -> tuple[int, bool]:
    """Returns the time `value` (us) in ns, computed exactly from its decimal digits, and True if it is usable."""
    try:
        us = value if isinstance(value, Decimal) else Decimal(str(value))
        if us.is_finite() and abs(us) < MAX_TIME_US:
            return us_to_ns(us), True
    except ArithmeticError:  # not a number, or out of range
        pass
    return 0, False


def whole_numbers(values: list[Any]) -> Ints:
    """Returns ids or sizes as int64. A value that is not a number, or not between -MAX_ID and MAX_ID, becomes 0."""
    if {int}.issuperset(map(type, values)):
        with suppress(OverflowError):
            numbers = np.fromiter(values, np.int64)
            return np.where((numbers > -MAX_ID) & (numbers < MAX_ID), numbers, 0)
    return np.array([whole_number(value) for value in values], np.int64)


def whole_number(value: Any) -> int:
    """Returns an id or size as int; 0 if `value` is not a number, or not between -MAX_ID and MAX_ID."""
    if type(value) is not int:
        try:
            value = int(float(value))
        except (TypeError, ValueError, OverflowError):
            return 0
    return value if -MAX_ID < value < MAX_ID else 0


def narrow(values: Ints) -> Any:
    """Returns the values in the smallest of int8, int16, int32 and int64 that fits all of them."""
    if values.dtype == np.int8:
        return values
    low, high = values.min(initial=0), values.max(initial=0)
    fitting = next((kind for kind in _NARROW if kind.min <= low and high <= kind.max), None)
    return values if fitting is None else values.astype(fitting.dtype)
