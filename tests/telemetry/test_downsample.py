"""Downsampling returns the requested number of points, including every spike."""

import numpy as np
import pytest

from tb_bottleneck.telemetry.bounded_columns import Rows, points_of


def rows_with(count: int, spike_at: int, bound: int = 1 << 16) -> Rows:
    rows = Rows(("value",), bound)
    values = np.ones(count)
    values[spike_at] = 50.0
    rows.append(np.arange(1, count + 1), {"value": values})
    return rows


def test_fewer_rows_than_were_asked_for_are_given_as_they_are() -> None:
    points = points_of(rows_with(10, 4), most=10)
    assert points.end.tolist() == list(range(1, 11))
    assert points.columns["value"].tolist() == [1, 1, 1, 1, 50, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("most", [2, 3, 10, 101, 999])
@pytest.mark.parametrize("spike_at", [0, 333, 999])
def test_a_thinned_column_keeps_its_spike_and_the_order_of_time(most: int, spike_at: int) -> None:
    points = points_of(rows_with(1000, spike_at), most=most)
    assert len(points.end) <= most
    assert points.columns["value"].max() == 50.0
    assert points.columns["value"].min() == 1.0
    assert (np.diff(points.end) >= 0).all()


def test_a_bucket_of_old_rows_shows_its_extremes_too() -> None:
    points = points_of(rows_with(5000, 10, bound=64))
    assert points.columns["value"].max() == 50.0


def test_only_what_is_newer_is_given() -> None:
    assert points_of(rows_with(100, 0), since=97).end.tolist() == [98, 99, 100]
    assert len(points_of(rows_with(100, 0), since=100).end) == 0
    assert points_of(rows_with(100, 0), since=10, until=12).end.tolist() == [11, 12]
    assert len(points_of(rows_with(100, 0), since=50, until=20).end) == 0
    assert len(points_of(rows_with(100, 0), most=0).end) == 0


def test_a_row_of_several_steps_is_one_point() -> None:
    rows = Rows(("value",), 64)
    rows.append(np.arange(1, 4), {"value": np.array([1.0, 2.0, 3.0])}, np.array([1, 40, 1]))
    assert points_of(rows).end.tolist() == [1, 2, 3]
