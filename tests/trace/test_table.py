"""Tables check and freeze their columns, and select rows of all columns at once."""

from dataclasses import dataclass

import numpy as np
import pytest

from tb_bottleneck.trace.table import Ints, Table, by_thread, column


@dataclass(frozen=True, eq=False)
class Points(Table):
    x: Ints = column("count", "to the right")
    y: Ints = column("count", "upwards")


def points():
    return Points(np.arange(5), np.arange(5) * 10)


def test_its_length_is_that_of_its_columns():
    assert len(points()) == 5
    with pytest.raises(ValueError, match=r"Points: columns of different lengths: \{'x': 1, 'y': 2\}"):
        Points(np.arange(1), np.arange(2))


def test_columns_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        points().x[0] = 1


@pytest.mark.parametrize("rows", [np.array([1, 3]), np.array([0, 1, 0, 1, 0], np.bool_), slice(1, 5, 2)])
def test_taking_rows_takes_them_of_every_column(rows):
    some = points().take(rows)
    assert (some.x.tolist(), some.y.tolist()) == ([1, 3], [10, 30])
    assert isinstance(some, Points)


def test_columns_have_unit_and_description():
    fields = Points.__dataclass_fields__
    assert fields["y"].metadata == {"unit": "count", "description": "upwards"}


def test_rows_by_thread_keep_their_order():
    thread = np.array([3, 1, 3, 0, 1, 3])
    found = by_thread(np.array([0, 1, 2, 4, 5]), thread)
    assert {key: rows.tolist() for key, rows in found.items()} == {1: [1, 4], 3: [0, 2, 5]}
    assert by_thread(np.empty(0, np.intp), thread) == {}
