"""Calibrations are stored per device and driver, and only valid ones are returned."""

import json
import os
import stat
from pathlib import Path

import pytest

from tb_bottleneck.base.persistence import CACHE_VARIABLE
from tb_bottleneck.monitor.facts import device

H200 = ("NVIDIA H200", "570.86.15")
FIGURES = {"bf16_flops": 7.9e14, "launch_ns": 4100.0}


def test_what_is_kept_is_given_back(cache_directory: Path) -> None:
    kept = device.save(*H200, FIGURES)
    assert kept is not None
    assert kept.parent == cache_directory / "calibrations"
    assert device.load(*H200) == FIGURES
    if os.name == "posix":
        assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


def test_another_driver_is_another_calibration() -> None:
    device.save(*H200, FIGURES)
    assert device.load("NVIDIA H200", "580.1") is None
    assert device.load("NVIDIA H100", "570.86.15") is None


def test_the_newer_one_takes_the_place_of_the_older() -> None:
    device.save(*H200, FIGURES)
    kept = device.save(*H200, {"bf16_flops": 1e15})
    assert device.load(*H200) == {"bf16_flops": 1e15}
    assert kept is not None
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        json.dumps({"schema": 2, "device": H200[0], "driver": H200[1], "measured": FIGURES}),
        json.dumps({"schema": 1, "device": "another", "driver": H200[1], "measured": FIGURES}),
        json.dumps({"schema": 1, "device": H200[0], "driver": H200[1], "measured": 7}),
        json.dumps({"schema": 1, "device": H200[0], "driver": H200[1], "measured": {"bf16_flops": "fast"}}),
    ],
)
def test_a_file_that_is_none_of_ours_is_not_used(content: str) -> None:
    kept = device.save(*H200, FIGURES)
    assert kept is not None
    kept.write_text(content)
    assert device.load(*H200) is None


def test_figures_that_are_none_are_left_out() -> None:
    kept = device.save(*H200, FIGURES)
    assert kept is not None
    bad = {"bf16_flops": -1, "tf32_flops": float("inf"), "fp32_flops": True, "something": 5, "fp16_flops": 2}
    kept.write_text(json.dumps({"schema": 1, "device": H200[0], "driver": H200[1], "measured": bad}))
    assert device.load(*H200) == {"fp16_flops": 2.0}


def test_where_the_user_keeps_no_cache_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, "off")
    assert device.save(*H200, FIGURES) is None
    assert device.load(*H200) is None


def test_a_directory_that_cannot_be_written_is_said(cache_directory: Path) -> None:
    (cache_directory / "calibrations").write_text("in the way")
    with pytest.raises(OSError):  # noqa: PT011  (which one depends on the system)
        device.save(*H200, FIGURES)
