"""The expected time on another device: an interval, a reason for each regime, and the assumptions."""

import inspect
import sys

import pytest
from comparison.drawn_runs import A100, H200, V100, judged, repeated

from tb_bottleneck.base.regime import REGIMES, Regime
from tb_bottleneck.comparison.devices.expected_time import device_pair_of, expected_time
from tb_bottleneck.comparison.devices.replay_prediction import ReplayPredictor

BOUND = repeated(9, op="##......", launch=".|......", gpu="..######", sync="..######")


def between(tmp_path, drawing, a, b):
    first, second = (judged(tmp_path, drawing, device=device).recording for device in (a, b))
    return first, device_pair_of(first, second)


def test_every_regime_has_a_reason(tmp_path):
    recording, move = between(tmp_path, BOUND, A100, H200)
    found = expected_time(ReplayPredictor(recording), move)
    assert found.because.keys() == set(REGIMES)
    assert found.because["memory"] == "device memory: 2,039 GB/s on A, 4,800 on B"
    assert "products run in tf32 on tensor cores: 156 TFLOP/s on A, 494 on B" in found.because["compute"]
    assert found.because["host"] == "the host is assumed to stay the same"


def test_the_kernels_alone_gain_more_than_the_step(tmp_path):
    recording, move = between(tmp_path, BOUND, A100, H200)
    found = expected_time(ReplayPredictor(recording), move)
    before = sum(recording.account.ns.values()) / len(recording.steps)
    assert found.kernels == pytest.approx((494.5 * 0.8) / (156 * 0.87))
    assert 1 < before / found.step.step_ns < found.kernels
    assert found.fastest_ns < found.step.step_ns < found.slowest_ns


def test_work_that_the_slower_device_hid_is_named(tmp_path):
    drawing = repeated(9, op="#####...", launch="|.......", gpu=".#######", sync=".....###")
    recording, move = between(tmp_path, drawing, V100, H200)
    assert "becomes visible" in expected_time(ReplayPredictor(recording), move).because["launch"]


def test_a_type_that_only_one_of_them_has_units_for(tmp_path):
    recording, move = between(tmp_path, BOUND, A100, V100)
    assert "no such units on B" in expected_time(ReplayPredictor(recording), move).because["compute"]


def test_there_is_no_move_to_the_same_or_an_unknown_device(tmp_path):
    assert between(tmp_path, BOUND, A100, A100)[1] is None
    assert between(tmp_path, BOUND, A100, {"id": 0, "name": "ACME 1"})[1] is None


def test_every_regime_with_device_work_has_a_reason_of_its_own():
    """All others get the reason for host time."""
    source = inspect.getsource(sys.modules[expected_time.__module__])
    assert [regime for regime in Regime if regime.device_busy and f"Regime.{regime.name}:" not in source] == []


def test_steps_of_a_damaged_file_that_take_no_time_have_no_deviations(tmp_path):
    """A file with overlapping step marks led to a division by zero."""
    recording, move = between(tmp_path, BOUND, A100, H200)
    begins = recording.steps.edges[:-1]
    found = expected_time(ReplayPredictor(recording, (begins, begins)), move)
    assert found.step.step_ns == found.slowest_ns == found.fastest_ns == 0
