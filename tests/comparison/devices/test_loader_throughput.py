"""Workers that are behind set the pace: no device makes them faster, and a slower one waits less for them."""

import pytest
from comparison.drawn_runs import H200, context, judged, repeated

from tb_bottleneck.comparison.compare import compare_runs
from tb_bottleneck.comparison.devices.kernel_scaling import (
    WORKERS_KEEP_UP,
    WORKERS_LIMIT,
    loader_assumptions,
    worker_throughput_limit,
)
from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if
from tb_bottleneck.measures.trace.loader_workers import workers_are_behind

# A batch is ready every ten columns, and the device works on it for four of them.
BEHIND = repeated(9, workers="######....", op="......#...", launch="......|...", gpu=".......###", sync=".......###")
AHEAD = repeated(9, workers="#.....", op=".#....", launch=".|....", gpu="..####", sync="..####")
ALONE = repeated(9, loader="######....", op="......#...", launch="......|...", gpu=".......###", sync=".......###")


def predicted(tmp_path, drawing, **asked):
    return what_if(judged(tmp_path, drawing, unit_us=1000, tb_bottleneck=context(workers=2)), WhatIfOptions(**asked))


def test_a_faster_device_waits_longer_for_the_same_batches(tmp_path):
    result = predicted(tmp_path, BEHIND, device="NVIDIA H200")
    assert result.after.speedup == pytest.approx(1, abs=0.02)
    assert result.regime == "input"
    assert WORKERS_LIMIT in result.assumptions


def test_a_slower_device_waits_less_for_them(tmp_path):
    """The device's three columns become nine and more: with six of waiting that were 15, and ten suffice to begin."""
    result = predicted(tmp_path, BEHIND, device="Tesla T4")
    waiting = next(bar for bar in result.by_regime if bar.regime == "input")
    assert waiting.b_ns < 0.5e6 < waiting.a_ns


def test_more_workers_are_not_held_to_the_pace_of_now(tmp_path):
    result = predicted(tmp_path, BEHIND, device="NVIDIA H200", workers=8)
    assert result.after.speedup > 1.5
    assert WORKERS_LIMIT not in result.assumptions


def test_the_expected_time_of_a_comparison_includes_it_too(tmp_path):
    a, b = judged(tmp_path, BEHIND, unit_us=1000), judged(tmp_path, BEHIND, unit_us=1000, device=H200)
    assert compare_runs(a, b).expected.speedup == pytest.approx(1, abs=0.02)


def test_of_workers_that_keep_up_nothing_more_is_known(tmp_path):
    recording = judged(tmp_path, AHEAD).recording
    assert worker_throughput_limit(recording) is None
    assert loader_assumptions(recording) == (WORKERS_KEEP_UP,)


def test_at_worst_workers_that_keep_up_can_do_no_more(tmp_path):
    """A simulated H100 was predicted to gain 5 to 20 %, but waited for workers that had only just kept up."""
    here, there = judged(tmp_path, AHEAD), judged(tmp_path, AHEAD, device=H200)
    result = what_if(here, WhatIfOptions(device="NVIDIA H200"))
    assert result.after.speedup > 1.3
    assert result.after.low <= 1
    expected = compare_runs(here, there).expected
    assert expected.low <= 1 < expected.speedup
    assert WORKERS_KEEP_UP in expected.assumptions


def test_the_training_process_has_no_separate_pace(tmp_path):
    recording = judged(tmp_path, ALONE).recording
    assert worker_throughput_limit(recording) is None
    assert loader_assumptions(recording) == ()


def test_handing_over_a_large_batch_is_no_waiting(tmp_path):
    """Each batch takes 1 ms to hand over, of a step of 80: a faster device "would wait for them"."""
    large = repeated(9, workers="#" + "." * 79, op=".#" + "." * 78, launch=".|" + "." * 78, gpu=".." + "#" * 78)
    recording = judged(tmp_path, large, unit_us=1000).recording
    assert not workers_are_behind(recording)
    assert worker_throughput_limit(recording) is None
