"""Numbers from the trace are checked before they are used."""

import pytest

from tb_bottleneck.trace.process_facts import positive


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (5, 5.0),
        (2.5, 2.5),
        ("255000000000000.0", 255e12),  # the reader's form of numbers with many digits
        ("17", 17.0),
        (0, None),
        (-1, None),
        (True, None),
        (None, None),
        ("fast", None),
        ("1e5", None),
        ("9" * 50, None),
        (float("nan"), None),
        (float("inf"), None),
        (10**400, None),
        ([5], None),
        ({"a": 5}, None),
    ],
)
def test_positive(value, number):
    assert positive(value) == number
