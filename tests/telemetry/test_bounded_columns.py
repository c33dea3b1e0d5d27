"""Tests that columns stay bounded, and that downsampling returns the requested number of points, including every spike.

The newest rows are unchanged, older ones are in buckets, and no extreme is lost.
"""

import numpy as np
import pytest

from tb_bottleneck.telemetry.bounded_columns import Rows, points_of


def filled(count: int, bound: int = 64, batch: int = 7, **spikes: float) -> Rows:
    """Returns rows 1..count with value 1, except for spikes given by row (`at_5=9.0`)."""
    rows = Rows(("value",), bound)
    values = np.ones(count)
    for name, value in spikes.items():
        values[int(name.removeprefix("at_")) - 1] = value
    for begin in range(0, count, batch):
        end = np.arange(begin + 1, min(begin + batch, count) + 1)
        rows.append(end, {"value": values[begin : begin + batch]})
    return rows


@pytest.mark.parametrize("count", [0, 1, 31, 64, 65, 500, 10_000])
def test_the_bound_holds_and_every_row_is_in_one_bucket(count: int) -> None:
    rows = filled(count)
    assert len(rows) <= 64
    assert len(rows.end) == len(rows.count) == len(rows)
    assert rows.count.sum() == count
    assert (np.diff(rows.end) > 0).all()
    assert rows.last == count


def test_few_rows_are_kept_as_they_are() -> None:
    rows = filled(20, at_3=5.0)
    assert rows.count.tolist() == [1] * 20
    assert rows.column("value").mean.tolist() == [1, 1, 5, *[1] * 17]


@pytest.mark.parametrize("at", [1, 2, 777, 4_999, 5_000])
def test_downsampling_keeps_spikes(at: int) -> None:
    rows = filled(5_000, **{f"at_{at}": 100.0})
    column = rows.column("value")
    assert column.high.max() == 100.0
    assert column.low.min() == 1.0
    assert float((column.mean * rows.count).sum()) == pytest.approx(5_099.0)


def test_the_history_has_one_resolution() -> None:
    rows = filled(10_000, bound=1024, batch=100)
    old = rows.count[: len(rows) // 3]
    assert old.min() == old.max() > 1
    assert rows.count[-10:].tolist() == [1] * 10


def test_an_unknown_value_stays_unknown_and_does_not_change_means() -> None:
    rows = Rows(("a", "b"), 16)
    for row in range(64):
        rows.append(np.array([row + 1]), {"a": np.array([2.0 if row % 2 else np.nan])})
    assert np.nanmax(rows.column("a").mean[:4]) == 2.0
    assert np.isnan(rows.column("b").high).all()


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
