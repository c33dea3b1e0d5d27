"""Tests changes of the link and of the device.

Only large copies from pinned memory use the link. Missing units are stated, and an unknown device allows no prediction.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from comparison.drawn_runs import context, judged, recorded, repeated
from helpers.draw import drawn

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.comparison.runs.compared_run import judge_run
from tb_bottleneck.comparison.what_if.hardware import (
    CannotPredict,
    change_device,
    change_link,
    device_pair_to,
    slot_assumptions,
)
from tb_bottleneck.replay.modified_graph import Estimate

DRAWING = repeated(9, op="##.....", h2d="..##...", gpu="....###")


def pinned(tmp_path, size=8_000_000, **header):
    """Copies of two columns, 200 us: 8 MB in that time is more than any link but the fastest can do."""
    path = tmp_path / "pinned.pt.trace.json"
    text = json.dumps(drawn(DRAWING, **header)).replace("Pageable -> Device", "Pinned -> Device")
    path.write_text(text.replace('"bytes": 1048576', f'"bytes": {size}'))
    return judge_run("pinned", [str(path)]).recording


@pytest.mark.parametrize(("spelt", "factor"), [("gen5x16", 0.5), ("PCIe 3 x16", 2.0), ("gen4x8", 2.0)])
def test_pinned_copies_go_by_the_link(tmp_path, spelt, factor):
    found = change_link(pinned(tmp_path), spelt).factors(Estimate.EXPECTED)
    assert sorted(set(np.round(found, 2))) == pytest.approx(sorted({1.0, factor}), abs=0.01)


def test_the_link_that_the_run_recorded_comes_first(tmp_path):
    recording = pinned(tmp_path, tb_bottleneck=context(link_generation=3, link_width=8))
    change = change_link(recording, "gen3x16")
    assert change.factors(Estimate.EXPECTED).min() == pytest.approx(0.5)
    assert "as the run recorded it" in change.assumptions[0]


def test_a_narrow_link_is_described_with_its_figures(tmp_path):
    change = change_link(pinned(tmp_path), "gen3x1")
    assert change.clause == "the link were PCIe 3.0 with 1 lane"
    assert "25 GB/s usable now, 0.8 then" in change.assumptions[0]


def test_copies_from_pageable_memory_stay_as_they_are(tmp_path):
    assert (change_link(judged(tmp_path, DRAWING).recording, "gen5x16").factors(Estimate.EXPECTED) == 1).all()


def test_copies_that_the_host_stages_go_no_faster_than_the_link(tmp_path):
    """1 MiB of pageable memory in 200 us is 5.2 GB/s, and a link of one lane carries 0.8: it cost nothing."""
    found = change_link(judged(tmp_path, DRAWING).recording, "gen3x1").factors(Estimate.EXPECTED)
    assert found.max() == pytest.approx((1 << 20) / (0.985 * 0.8) / 200_000, rel=1e-3)


@pytest.mark.parametrize("spelt", ["", "gen9x16", "gen4", "x16", "gen4x0"])
def test_what_is_no_link_is_refused(tmp_path, spelt):
    with pytest.raises(NotFound, match="write it as in gen4x16"):
        change_link(pinned(tmp_path), spelt)


@pytest.mark.parametrize(
    ("spelt", "low", "expected", "high"),
    [("gen5x16", 0.75 / 0.9, 0.75, 0.5 / 1.1), ("gen4x8", 2 / 0.9, 1.5, 1.5 / 1.1)],
)
def test_copy_time_that_the_link_does_not_cause_stays(tmp_path, spelt, low, expected, high):
    """A link of 25.2 GB/s takes half of these copies' time; the rest was predicted to follow the link, too."""
    change = change_link(pinned(tmp_path, 2_520_320), spelt)
    for case, factor in ((Estimate.LOW, low), (Estimate.EXPECTED, expected), (Estimate.HIGH, high)):
        found = change.factors(case)
        assert found[found != 1] == pytest.approx(factor, rel=1e-3)


DEVICE_DRAWING = repeated(9, op="##..", gpu="..##")


def test_units_that_the_other_device_lacks_are_said(tmp_path):
    recording = judged(tmp_path, DEVICE_DRAWING).recording
    change = change_device(recording, device_pair_to(recording, "Tesla T4"))
    assert change.clause == "it ran on a T4"
    assert any("products in tf32 run as fp32 there" in line for line in change.assumptions)


def test_a_recording_of_an_unknown_device_predicts_nothing(tmp_path):
    unknown = judged(tmp_path, DEVICE_DRAWING, device={"id": 0, "name": "ACME 1"}).recording
    with pytest.raises(CannotPredict, match="The device 'ACME 1' is not listed"):
        device_pair_to(unknown, "NVIDIA H200")


def test_a_device_that_was_measured_is_held_against_another_by_data_sheets(tmp_path):
    """Copies reach nine tenths of a data sheet: against the sheet of the same device that was a gain of a tenth."""
    measured = context(calibration={"copy_bytes_per_s": 1.79e12, "tf32_flops": 120e12, "bf16_flops": 255e12})
    recording = judged(tmp_path, DEVICE_DRAWING, tb_bottleneck=measured).recording
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
    recording = judged(tmp_path, DEVICE_DRAWING).recording
    change = change_device(recording, device_pair_to(recording, "AMD Instinct MI300X"))
    low, high = (change.factors(case).min() for case in (Estimate.LOW, Estimate.HIGH))
    assert low / high > 2
    assert any("AMD's libraries have their own kernels" in line for line in change.assumptions)


def test_collectives_are_assumed_to_move_together(tmp_path):
    alone, together = (judged(tmp_path, repeated(9, op="##..", **{row: "..##"})).recording for row in ("gpu", "nccl"))
    said = [change_device(one, device_pair_to(one, "NVIDIA H200")).assumptions for one in (alone, together)]
    assert [any("all ranks move" in line for line in lines) for lines in said] == [False, True]
