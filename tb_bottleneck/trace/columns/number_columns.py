"""Numbers as they stand in a trace (integers, floats, decimals, text, nothing) to columns of int64."""

from contextlib import suppress
from decimal import Decimal
from types import NoneType
from typing import Any

import numpy as np

from tb_bottleneck.trace.table import Bools, Ints
from tb_bottleneck.units import NS_PER_US, us_to_ns

# Times beyond this do not fit into int64 nanoseconds.
MAX_TIME_US = 9.2e15
# Ids and sizes beyond this are no ids and sizes.
MAX_ID = 2**62
_PLAIN = {int, float, NoneType}
_NARROW = (np.iinfo(np.int8), np.iinfo(np.int16), np.iinfo(np.int32))


def times(values: list[Any]) -> tuple[Ints, Bools]:
    """Microseconds to nanoseconds, and which of them are usable."""
    kinds = {*map(type, values)}
    if not kinds <= _PLAIN:
        return _exact_times(values)
    try:
        # Only np.array makes NaN of nothing; where there is none, it takes three times as long.
        us = np.array(values, np.float64) if NoneType in kinds else np.fromiter(values, np.float64)
    except OverflowError:
        return _exact_times(values)
    good = np.abs(us) < MAX_TIME_US  # not so for NaN
    if not good.all():
        us = np.where(good, us, 0.0)
    # Split before scaling: microseconds since 1970 times 1000 are beyond float64's whole numbers.
    whole = np.floor(us)
    return whole.astype(np.int64) * NS_PER_US + np.rint((us - whole) * NS_PER_US).astype(np.int64), good


def _exact_times(values: list[Any]) -> tuple[Ints, Bools]:
    pairs = [_exact_time(value) for value in values]
    return np.array([ns for ns, _ in pairs], np.int64), np.array([good for _, good in pairs], np.bool_)


def _exact_time(value: Any) -> tuple[int, bool]:
    """One time, by its decimal digits."""
    try:
        us = value if isinstance(value, Decimal) else Decimal(str(value))
        if us.is_finite() and abs(us) < MAX_TIME_US:
            return us_to_ns(us), True
    except ArithmeticError:  # no number, or beyond any
        pass
    return 0, False


def whole_numbers(values: list[Any]) -> Ints:
    """Ids and sizes as int64; 0 where there is none."""
    if {int}.issuperset(map(type, values)):
        with suppress(OverflowError):
            numbers = np.fromiter(values, np.int64)
            return np.where((numbers > -MAX_ID) & (numbers < MAX_ID), numbers, 0)
    return np.array([whole_number(value) for value in values], np.int64)


def whole_number(value: Any) -> int:
    """One id or size; 0 where there is none."""
    if type(value) is not int:
        try:
            value = int(float(value))
        except (TypeError, ValueError, OverflowError):
            return 0
    return value if -MAX_ID < value < MAX_ID else 0


def narrow(values: Ints) -> Any:
    """The same numbers in fewer bytes: while the table is made, the parts of a column and all of it are held."""
    if values.dtype == np.int8:
        return values
    low, high = values.min(initial=0), values.max(initial=0)
    fitting = next((kind for kind in _NARROW if kind.min <= low and high <= kind.max), None)
    return values if fitting is None else values.astype(fitting.dtype)
