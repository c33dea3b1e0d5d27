"""Tests predicted times on another device: kernels by their roofs, and loader workers that set the pace."""

import json

import numpy as np
import pytest
from comparison.drawn_runs import A100, H200, context, judged, repeated
from helpers.draw import drawn

from tb_bottleneck.bottlenecks.input.loader_workers import workers_are_behind
from tb_bottleneck.comparison.compare import compare_runs
from tb_bottleneck.comparison.devices.device_rates import device_named, device_of
from tb_bottleneck.comparison.devices.kernel_scaling import (
    MIN_LINK_BOUND_BYTES,
    WORKERS_KEEP_UP,
    WORKERS_LIMIT,
    DevicePair,
    _beside_the_roof,
    loader_assumptions,
    scaled_lengths,
    worker_throughput_limit,
)
from tb_bottleneck.comparison.runs.compared_run import judge_run
from tb_bottleneck.comparison.what_if.prediction import WhatIfOptions, what_if
from tb_bottleneck.knowledge.catalogue import precision_of
from tb_bottleneck.replay.modified_graph import Estimate

STREAM, PRODUCT = "stream", "gpu"


def factors(tmp_path, row, name="NVIDIA H200", unit_us=100.0, estimate=Estimate.EXPECTED):
    """Time there / time here of what is drawn as this row."""
    run = judged(tmp_path, repeated(9, op="##..", **{row: ".###"}), unit_us=unit_us)
    here = device_of(run.recording.trace)
    ops = run.recording.trace.device_ops
    after = scaled_lengths(run.recording, DevicePair(here, device_named(name)), estimate)
    return np.unique(np.round(after / (ops.end - ops.start), 6))


def test_a_kernel_that_bandwidth_bounds_gains_the_ratio_of_the_bandwidths(tmp_path):
    assert factors(tmp_path, STREAM) == pytest.approx([2039 / 4800])


def test_a_kernel_that_memory_limits_gains_in_the_part_at_its_roof_only():
    """Half of the time at the bandwidth of an H100, for an H200, which has 1.43 times the bandwidth and equal units."""
    devices = DevicePair(device_named("NVIDIA H100 80GB HBM3"), device_named("NVIDIA H200"))
    ratio = devices.bandwidth_ratio
    by_roof = np.full(3, 1 / ratio)
    factor = _beside_the_roof(by_roof, np.array([0.0, 0.5, 1.0]), devices)
    assert factor == pytest.approx([1.0, (1 + 1 / ratio) / 2, 1 / ratio], rel=0.01)


def test_a_product_gains_the_ratio_of_the_rates_of_its_type(tmp_path):
    assert factors(tmp_path, PRODUCT) == pytest.approx([156 * 0.87 / (494.5 * 0.80)])


def test_a_kernel_of_one_block_gains_what_one_multiprocessor_does(tmp_path):
    """One block uses 1/108 of an A100 and 1/132 of an H200."""
    ratio = (494.5 * 0.80) / (156 * 0.87)
    assert factors(tmp_path, "small") == pytest.approx([132 / 108 / ratio], rel=1e-4)


def test_what_is_over_at_once_stays_as_it_is(tmp_path):
    assert factors(tmp_path, STREAM, unit_us=1.0) == pytest.approx([1.0])


def test_what_is_over_at_once_takes_longer_on_a_slower_device_at_worst(tmp_path):
    """3 us of streaming on an A100: 2 of them start and drain, and 1 moves bytes at 2039 GB/s, on a T4 at 320."""
    assert factors(tmp_path, STREAM, "Tesla T4", unit_us=1.0) == pytest.approx([1.0])
    found = factors(tmp_path, STREAM, "Tesla T4", unit_us=1.0, estimate=Estimate.LOW)
    assert found == pytest.approx([(2 + 2039 / 320) / 3], rel=1e-4)


def test_the_worst_and_the_best_lie_around_what_is_expected(tmp_path):
    low, expected, high = (
        factors(tmp_path, STREAM, estimate=case)[0] for case in (Estimate.LOW, Estimate.EXPECTED, Estimate.HIGH)
    )
    assert high < expected < low


def test_where_the_unit_is_unknown_the_best_case_uses_vector_units(tmp_path):
    """An RTX 4090 has half of an A100's tensor cores, and four times its vector units: the name contains only fp16."""
    trace = drawn(repeated(9, op="##..", gpu="..##"), 1000.0)
    name = "acme_gemm_fp16_tn"
    precision = precision_of(name)
    assert precision is not None
    assert precision.unit == "unknown"
    path = tmp_path / "run.pt.trace.json"
    path.write_text(json.dumps(trace).replace("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x16", name))
    recording = judge_run("run", [str(path)]).recording
    move = DevicePair(device_of(recording.trace), device_named("RTX 4090"))
    ops = recording.trace.device_ops
    expected, best = (
        (scaled_lengths(recording, move, estimate) / (ops.end - ops.start)).min()
        for estimate in (Estimate.EXPECTED, Estimate.HIGH)
    )
    assert expected > 1.5
    assert best < 19.5 / 82.6


def test_the_same_device_changes_nothing(tmp_path):
    for row in (STREAM, PRODUCT, "small", "h2d", "nccl"):
        assert factors(tmp_path, row, A100["name"]) == pytest.approx([1.0])


def test_copies_from_pageable_memory_are_the_host_s(tmp_path):
    assert MIN_LINK_BOUND_BYTES == 1 << 20, "as large as what is drawn"
    assert factors(tmp_path, "h2d") == pytest.approx([1.0])


def test_copies_within_a_device_gain_the_ratio_of_the_bandwidths(tmp_path):
    assert factors(tmp_path, "d2d") == pytest.approx([2039 / 4800])


def test_collectives_go_by_the_links_between_devices(tmp_path):
    assert factors(tmp_path, "nccl") == pytest.approx([300 / 450])


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
