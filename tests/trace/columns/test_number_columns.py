"""Numbers in all spellings of traces, alone and in mixed columns; other values are distinguished."""

from decimal import Decimal

import numpy as np
import pytest

from tb_bottleneck.trace.columns.number_columns import MAX_ID, MAX_TIME_US, narrow, times, whole_numbers

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("us", "ns"),
    [
        (0, 0), (1.5, 1_500), (-1.5, -1_500), (0.0004, 0), (1e12 + 0.123, 10**15 + 123),
        (1_700_000_000_000_001, 1_700_000_000_000_001_000),
        (Decimal("1700000000000000.123"), 1_700_000_000_000_000_123),
        ("1700000000000000.123", 1_700_000_000_000_000_123),
        (Decimal("0.0006"), 1), (Decimal("1e-9999999"), 0), ("-2", -2_000), (" 2 ", 2_000), ("1e3", 1_000_000),
        (None, None), (NAN, None), (INF, None), (-INF, None), (10**400, None), (-(2**64), None),
        ("", None), ("nan", None), ("sNaN", None), ("N/A", None), ("1e999999999", None),
        (Decimal("1e9999999"), None), (Decimal("sNaN"), None), (MAX_TIME_US, None), (-MAX_TIME_US, None),
    ],
)  # fmt: skip
def test_microseconds_to_nanoseconds(us, ns):
    """Tests each alone and next to a float, a text and a decimal, which use other code paths."""
    for beside in ([], [1.0], ["1"], [Decimal(1)], [None]):
        values, good = times([us, *beside])
        assert (int(values[0]) if good[0] else None) == ns
        assert values.dtype == np.int64
    assert values[0] == (ns or 0)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (5, 5), (-1, -1), (5.0, 5), ("5", 5), ("5.0", 5), (True, 1), (2**53 + 1, 2**53 + 1), (MAX_ID, 0), (-MAX_ID, 0),
        (10**400, 0), (NAN, 0), (INF, 0), (None, 0), ("", 0), ("x", 0), ([1], 0), ("9" * 5000, 0),
    ],
)  # fmt: skip
def test_ids_and_sizes(value, number):
    for beside in ([], [7], ["7"], [2**63]):
        assert whole_numbers([value, *beside]).tolist()[0] == number
    assert whole_numbers([value]).dtype == np.int64


@pytest.mark.parametrize("bound", [0, 7, 15, 31])
def test_narrow_keeps_the_numbers(bound):
    for low, high in ((0, 2**bound), (0, 2**bound - 1), (-(2**bound), 0), (-(2**bound) - 1, 0)):
        values = np.array([low, high], np.int64)
        assert narrow(values).tolist() == [low, high]
    assert narrow(np.array([2**bound - 1])).itemsize == max((bound + 1) // 8, 1)
    assert narrow(np.empty(0, np.int64)).tolist() == []
