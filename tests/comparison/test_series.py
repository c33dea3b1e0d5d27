"""Several runs: a sweep is recognised by the one thing that varies, with its knee; else it is a history."""

import pytest
from comparison.sides import H200, context, judged, read, repeated

from tb_bottleneck.comparison.series import series_of


def run(tmp_path, waiting, **header):
    """Steps that wait so many columns for data before four columns of work."""
    rows = {"workers": "#" * waiting + "....", "gpu": "." * waiting + "####"}
    return judged(tmp_path, repeated(9, **rows), **header)


def with_workers(tmp_path, waiting, workers):
    return run(tmp_path, waiting, tb_bottleneck=context(workers=workers, torch="2.4"))


def test_a_sweep_of_workers_is_ordered_and_has_its_knee(tmp_path):
    """8 columns of waiting with 1 worker, 4 with 2, 1 with 4, and no less with 8."""
    sweep = [with_workers(tmp_path, waiting, number) for waiting, number in ((1, 8), (8, 1), (1, 4), (4, 2))]
    told = series_of(sweep)
    assert told.varies == "workers"
    assert [point.value for point in told.points] == ["1", "2", "4", "8"]
    assert told.knee.value == "4"
    assert told.points[2].speedup == pytest.approx(12 / 5, rel=0.01)
    assert "workers" in told.headline
    assert not told.HasField("turn")


def test_a_sweep_that_still_gains_at_its_end_has_no_knee(tmp_path):
    told = series_of([with_workers(tmp_path, waiting, number) for waiting, number in ((8, 1), (4, 2), (1, 4))])
    assert not told.HasField("knee")
    assert "beyond 4 is not known" in told.headline


def test_a_sweep_that_gains_nothing_has_no_knee(tmp_path):
    told = series_of([with_workers(tmp_path, 1, number) for number in (1, 2, 4)])
    assert not told.HasField("knee")
    assert "Nothing is gained" in told.headline


def test_where_two_things_vary_it_is_no_sweep(tmp_path):
    sides = [with_workers(tmp_path, 4, 1), run(tmp_path, 1, device=H200, tb_bottleneck=context(workers=4))]
    assert series_of(sides).varies == "run"


def test_a_history_tells_since_when_it_is_slower(tmp_path):
    told = series_of([run(tmp_path, waiting) for waiting in (1, 1, 1, 5, 5)])
    assert told.varies == "run"
    assert told.turn.since == told.points[3].run
    assert told.turn.regime == "input"
    assert "Slower since" in told.headline


def test_a_steady_history_is_called_so(tmp_path):
    told = series_of([run(tmp_path, 2) for _ in range(3)])
    assert not told.HasField("turn")
    assert "None is slower" in told.headline


def test_a_run_without_a_verdict_is_left_out_and_said_to_be(tmp_path):
    told = series_of([run(tmp_path, 2), read(tmp_path, "step a\nop #"), run(tmp_path, 2)])
    assert len(told.points) == 2
    assert "incomplete" in told.notes[0]


def test_one_run_makes_no_series(tmp_path):
    assert series_of([run(tmp_path, 2)]).points == []
