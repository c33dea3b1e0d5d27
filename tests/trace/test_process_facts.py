"""Numbers from the trace are checked before they are used."""

import pytest

from tb_bottleneck.trace.process_facts import parameter_bytes, parameters_in_fp32, positive


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (5, 5.0),
        (2.5, 2.5),
        ("17", None),
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


@pytest.mark.parametrize(
    ("by_type", "share", "size"),
    [
        ({"float32": 3, "bfloat16": 1}, 0.75, 14),
        ({"float32": 4}, 1.0, 16),
        ({"float32": "x", "bfloat16": 2}, 0.0, 4),  # a text is no count
        ({"float32": -1, "float8": 2}, 0.0, None),  # a type of unknown size
        ({"float32": True}, None, None),
        ({}, None, None),
        ("x", None, None),
    ],
)
def test_counts_of_parameters_by_type(by_type, share, size):
    assert parameters_in_fp32(by_type) == share
    assert parameter_bytes(by_type) == size
