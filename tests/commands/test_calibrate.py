"""Tests of `tb-bottleneck calibrate`: text, JSON, and results that are stored for later runs."""

import json
from pathlib import Path

import pytest

from tb_bottleneck.__main__ import main
from tb_bottleneck.base import calibrations
from tb_bottleneck.base.persistence import CACHE_VARIABLE
from tb_bottleneck.tools import calibration
from tb_bottleneck.tools.calibration import Calibration


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> Calibration:
    result = Calibration("NVIDIA H200", "570.86.15", {"bf16_flops": 7.9e14, "fp32_flops": 9e11, "launch_ns": 4100.0})
    result.figures["copy_bytes_per_s"] = 4.1e12
    result.left_out["tf32_flops"] = "this device has no TF32"
    monkeypatch.setattr(calibration, "calibrate", lambda device, progress: result)
    return result


def test_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "NVIDIA H200 (570.86.15)"
    assert [line.split("  ")[-1].strip() for line in lines[1:6]] == [
        "790.0 TFLOP/s",
        "900.0 GFLOP/s",
        "4.10 µs",
        "4100.0 GB/s",
        "not measured: this device has no TF32",
    ]
    assert lines[6].startswith("Stored in ")


def test_for_programs_and_for_later_runs(measured: Calibration, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "schema": 1,
        "device": "NVIDIA H200",
        "driver": "570.86.15",
        "calibration": measured.figures,
        "left_out": measured.left_out,
    }
    assert calibrations.load("NVIDIA H200", "570.86.15") == measured.figures


def test_a_cache_that_cannot_be_written_does_not_prevent_the_result(
    cache_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (cache_directory / "calibrations").write_text("in the way")
    assert main(["calibrate", "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["device"] == "NVIDIA H200"
    assert "could not be stored" in err


def test_a_cache_that_is_off_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, "off")
    assert main(["calibrate"]) == 0
    assert "Not stored" in capsys.readouterr().out
