"""Another device: missing units are stated, and an unknown device allows no prediction."""

from pathlib import Path

import pytest
from comparison.drawn_runs import context, judged, recorded, repeated

from tb_bottleneck.comparison.runs.compared_run import judge_run
from tb_bottleneck.comparison.what_if.hardware import CannotPredict, change_device, device_pair_to, slot_assumptions
from tb_bottleneck.replay.modified_graph import Estimate

DRAWING = repeated(9, op="##..", gpu="..##")


def test_units_that_the_other_device_lacks_are_said(tmp_path):
    recording = judged(tmp_path, DRAWING).recording
    change = change_device(recording, device_pair_to(recording, "Tesla T4"))
    assert change.clause == "it ran on a T4"
    assert any("products in tf32 run as fp32 there" in line for line in change.assumptions)


def test_a_recording_of_an_unknown_device_predicts_nothing(tmp_path):
    unknown = judged(tmp_path, DRAWING, device={"id": 0, "name": "ACME 1"}).recording
    with pytest.raises(CannotPredict, match="The device 'ACME 1' is not listed"):
        device_pair_to(unknown, "NVIDIA H200")


def test_a_device_that_was_measured_is_held_against_another_by_data_sheets(tmp_path):
    """Copies reach nine tenths of a data sheet: against the sheet of the same device that was a gain of a tenth."""
    measured = context(calibration={"copy_bytes_per_s": 1.79e12, "tf32_flops": 120e12, "bf16_flops": 255e12})
    recording = judged(tmp_path, DRAWING, tb_bottleneck=measured).recording
    move = device_pair_to(recording, "NVIDIA A100-SXM4-80GB")
    assert move.bandwidth_ratio == pytest.approx(1)
    assert (change_device(recording, move).factors(Estimate.EXPECTED) == 1).all()


def test_the_other_device_s_slot_is_said_where_copies_go_by_it(tmp_path):
    path = recorded(tmp_path, repeated(9, op="##....", h2d="..##..", gpu="....##"))
    staged = judge_run("staged", [path]).recording
    Path(path).write_text(Path(path).read_text().replace("Pageable", "Pinned"))
    linked = judge_run("linked", [path]).recording
    said = [" ".join(slot_assumptions(one, device_pair_to(one, "NVIDIA H200"))) for one in (staged, linked)]
    assert not said[0], "copies from pageable memory are the host's"
    assert "it is in the best slot for this device, with 50 GB/s usable instead of 25" in said[1]


def test_another_vendor_s_device_has_a_wide_interval(tmp_path):
    recording = judged(tmp_path, DRAWING).recording
    change = change_device(recording, device_pair_to(recording, "AMD Instinct MI300X"))
    low, high = (change.factors(case).min() for case in (Estimate.LOW, Estimate.HIGH))
    assert low / high > 2
    assert any("AMD's libraries have their own kernels" in line for line in change.assumptions)


def test_collectives_are_assumed_to_move_together(tmp_path):
    alone, together = (judged(tmp_path, repeated(9, op="##..", **{row: "..##"})).recording for row in ("gpu", "nccl"))
    said = [change_device(one, device_pair_to(one, "NVIDIA H200")).assumptions for one in (alone, together)]
    assert [any("all ranks move" in line for line in lines) for lines in said] == [False, True]
