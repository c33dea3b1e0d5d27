"""Another device: what it lacks is said, and a device that nobody knows is no start."""

import pytest
from comparison.sides import judged, repeated

from tb_bottleneck.comparison.changes.change import Unpredictable
from tb_bottleneck.comparison.changes.device import move_to, to_device

DRAWING = repeated(9, op="##..", gpu="..##")


def test_units_that_the_other_device_lacks_are_said(tmp_path):
    recording = judged(tmp_path, DRAWING).recording
    change = to_device(recording, move_to(recording, "Tesla T4"))
    assert change.says == "it ran on a T4"
    assert any("products in tf32 run as fp32 there" in line for line in change.assumptions)


def test_a_recording_of_an_unknown_device_predicts_nothing(tmp_path):
    unknown = judged(tmp_path, DRAWING, device={"id": 0, "name": "ACME 1"}).recording
    with pytest.raises(Unpredictable, match="Nothing is known of the device 'ACME 1'"):
        move_to(unknown, "NVIDIA H200")


def test_collectives_are_assumed_to_move_together(tmp_path):
    alone, together = (judged(tmp_path, repeated(9, op="##..", **{row: "..##"})).recording for row in ("gpu", "nccl"))
    said = [to_device(one, move_to(one, "NVIDIA H200")).assumptions for one in (alone, together)]
    assert [any("all ranks move" in line for line in lines) for lines in said] == [False, True]
