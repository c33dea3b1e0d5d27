"""Several runs: a sweep is recognised by the one thing that varies, else it is a history."""

import pytest
from comparison.drawn_runs import H200, V100, context, judged, read, repeated

from tb_bottleneck.comparison.series.run_series import series_of


def run(tmp_path, waiting, **header):
    """Steps that wait so many columns for data before four columns of work."""
    rows = {"workers": "#" * waiting + "....", "gpu": "." * waiting + "####"}
    return judged(tmp_path, repeated(9, **rows), **header)


def with_workers(tmp_path, waiting, workers):
    return run(tmp_path, waiting, tb_bottleneck=context(workers=workers, torch="2.4"))


def test_a_sweep_of_workers_is_ordered(tmp_path):
    """8 columns of waiting with 1 worker, 4 with 2, 1 with 4, and no less with 8."""
    sweep = [with_workers(tmp_path, waiting, number) for waiting, number in ((1, 8), (8, 1), (1, 4), (4, 2))]
    result = series_of(sweep)
    assert result.varies == "workers"
    assert [point.value for point in result.points] == ["1", "2", "4", "8"]
    assert result.points[2].speedup == pytest.approx(12 / 5, rel=0.01)
    assert "workers" in result.headline
    assert not result.HasField("regression_point")


def test_a_sweep_that_still_gains_at_its_end_says_so(tmp_path):
    result = series_of([with_workers(tmp_path, waiting, number) for waiting, number in ((8, 1), (4, 2), (1, 4))])
    assert "beyond 4 were not recorded" in result.headline


def test_a_sweep_that_gains_nothing_says_so(tmp_path):
    result = series_of([with_workers(tmp_path, 1, number) for number in (1, 2, 4)])
    assert "There is no gain" in result.headline


def test_where_two_things_vary_it_is_no_sweep(tmp_path):
    runs = [with_workers(tmp_path, 4, 1), run(tmp_path, 1, device=H200, tb_bottleneck=context(workers=4))]
    assert series_of(runs).varies == "run"


def test_runs_with_one_setting_are_repeats(tmp_path):
    """Two runs with 1 worker, one of which waits twice as long as the other: one point, and a note."""
    result = series_of([with_workers(tmp_path, waiting, number) for waiting, number in ((8, 1), (1, 4), (4, 1))])
    assert [(point.value, len(point.runs), point.steps) for point in result.points] == [("1", 2, 16), ("4", 1, 8)]
    assert result.points[0].ns == pytest.approx((1.2e6 + 0.8e6) / 2, rel=0.01)
    assert (result.points[0].low_ns, result.points[0].high_ns) == pytest.approx((0.8e6, 1.2e6), rel=0.01)
    assert any("differ by 50 % (" in note for note in result.notes)


def test_devices_are_no_sweep_and_are_ordered_by_time(tmp_path):
    result = series_of([run(tmp_path, 1), run(tmp_path, 8, device=H200), run(tmp_path, 4, device=V100)])
    assert (result.kind, result.varies) == ("settings", "device")
    assert [point.value for point in result.points] == [H200["name"], V100["name"], "NVIDIA A100-SXM4-80GB"]
    assert "“NVIDIA H200”" in result.headline


def test_settings_that_the_noise_does_not_tell_apart_are_not_ranked(tmp_path):
    result = series_of([run(tmp_path, 2), run(tmp_path, 2, device=H200), run(tmp_path, 2, device=V100)])
    assert "does not depend on device beyond the noise" in result.headline


def test_what_differs_between_the_runs_of_a_history_is_named(tmp_path):
    facts = ({"workers": 1, "torch": "2.4"}, {"workers": 2, "torch": "2.5"}, {"workers": 4, "torch": "2.6"})
    result = series_of([run(tmp_path, 2, tb_bottleneck=context(**one)) for one in facts])
    assert result.kind == "history"
    assert any("(torch, workers)" in note for note in result.notes)


def test_runs_that_do_not_do_the_same_work_make_no_curve(tmp_path):
    one = repeated(9, op="##......", launch=".|......", gpu="..######")
    four = repeated(9, op="#.#.#.#.", launch="|.|.|.|.", gpu=".#.#.#.#")
    result = series_of([judged(tmp_path, drawing) for drawing in (one, four, one)])
    assert result.kind == "apart"
    assert "do different work" in result.headline


def test_a_history_tells_since_when_it_is_slower(tmp_path):
    result = series_of([run(tmp_path, waiting) for waiting in (1, 1, 1, 5, 5)])
    assert result.varies == "run"
    assert result.regression_point.since == result.points[3].run
    assert result.regression_point.regime == "input"
    assert "Slower since" in result.headline


def test_a_steady_history_is_called_so(tmp_path):
    result = series_of([run(tmp_path, 2) for _ in range(3)])
    assert not result.HasField("regression_point")
    assert "No run is slower than the runs before it" in result.headline


def test_more_ranks_are_not_said_to_gain_nothing(tmp_path):
    """A step of each rank takes as long, and works on samples of its own."""

    def ranks(number):
        return run(tmp_path, 2, distributedInfo={"backend": "nccl", "rank": 0, "world_size": number})

    result = series_of([ranks(1), ranks(4), ranks(8)])
    assert result.varies == "ranks"
    assert "more ranks do more work" in result.headline
    assert "There is no gain" not in result.headline


def test_a_rise_inside_the_noise_is_not_called_one(tmp_path):
    """Steps of 5 to 7 columns each: with 4 workers they take 6.2 on average, with 1 worker 6."""

    def uneven(lengths, workers):
        rows = {"step": "", "workers": "", "gpu": ""}
        for number, length in enumerate(lengths):
            rows["step"] += chr(ord("a") + number) * length
            rows["workers"] += "#" + "." * (length - 1)
            rows["gpu"] += "." + "#" * (length - 1)
        drawing = "\n".join(f"{name} {row}" for name, row in rows.items())
        return judged(tmp_path, drawing, tb_bottleneck=context(workers=workers))

    result = series_of([uneven((5, 7, 6, 5, 7, 6, 5, 7, 6), 1), uneven((5, 7, 6, 7, 7, 6, 5, 7, 6), 4)])
    assert result.varies == "workers"
    assert "rises" not in result.headline
    assert "between the first and the last is within the noise" in result.headline


def test_a_run_without_a_verdict_is_left_out_and_said_to_be(tmp_path):
    result = series_of([run(tmp_path, 2), read(tmp_path, "step a\nop #"), run(tmp_path, 2)])
    assert len(result.points) == 2
    assert "incomplete" in result.notes[0]


def test_one_run_makes_no_series(tmp_path):
    assert series_of([run(tmp_path, 2)]).points == []
