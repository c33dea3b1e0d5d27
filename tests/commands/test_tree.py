"""Tests of `tb-bottleneck tree`: text, JSON, and wrong usage."""

import json
from pathlib import Path

import pytest
from drilldown.tree.recorded_model import GEMM, recorded_steps

from tb_bottleneck.__main__ import main


@pytest.fixture
def path(tmp_path: Path) -> str:
    recorded_steps(4).inspected(tmp_path)
    return str(tmp_path / "model.pt.trace.json")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["tree", *arguments]) == 0
    return capsys.readouterr().out


def test_for_people(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, path, "--rows", "12").splitlines()
    assert lines[0] == "Time by module: 3 steps of 2.00 ms, times and counts are per step"
    assert lines[1].split() == ["Time", "Share", "Own", "Device", "Host", "Calls", "Where"]
    assert "100 %" in lines[2]
    layer = next(line for line in lines if "Linear_1" in line)
    assert "300 µs" in layer
    assert layer.index("Linear_1") > lines[2].index("all"), "deeper rows are indented"
    assert "not recorded" in lines[-1]


def test_rows_by_line_are_named_for_what_is_recorded(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, path, "--by", "line").splitlines()
    assert lines[0].startswith("Time by function and line: ")
    assert lines[1].endswith("  Function and line")


def test_for_programs(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer = json.loads(run(capsys, path, "--json", "--by", "operator", "--steps", "2-3"))
    assert (answer["schema"], answer["by"], answer["steps"]) == (1, "operator", 2)
    assert answer["tree"]["time_ns"] == pytest.approx(answer["window_ns"])
    assert sum(child["time_ns"] for child in answer["tree"]["children"]) == pytest.approx(answer["window_ns"])
    assert sum(answer["tree"]["regimes"].values()) == pytest.approx(answer["window_ns"])
    assert answer["devices"] == [{"index": 0, "name": "NVIDIA A100-SXM4-80GB", "total_ns": 4e6}]


def test_names_are_searched(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, path, "--find", "linear_1")
    assert '"linear_1" is in 1 names' in text
    assert "Linear_0" not in text


def test_a_run_against_another(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorder = recorded_steps(4)
    for event in recorder.events:
        if event["name"] == GEMM and event["dur"] == 200:
            event["dur"] = 100
    (tmp_path / "faster").mkdir()
    recorder.inspected(tmp_path / "faster")
    text = run(capsys, str(tmp_path / "faster"), "--against", path)
    row = next(line for line in text.splitlines() if GEMM[-20:] in line)
    assert "-" in row
    answer = json.loads(run(capsys, str(tmp_path / "faster"), "--against", path, "--json"))
    assert answer["a"]["tree"]["device_ns"] - answer["b"]["tree"]["device_ns"] == 3 * 2 * 100_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sort", "speed"), "must be one of time, device"),
        (("--device", "7"), "device 7 did no recorded work; devices with work: 0"),
        (("--steps", "2-9"), "it has the steps 1 to 3"),
    ],
)
def test_wrong_usage_is_explained(
    path: str, arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tree", path, *arguments]) == 2
    assert message in capsys.readouterr().err


def test_an_empty_recording_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.pt.trace.json").write_text('{"traceEvents": []}')
    assert main(["tree", str(tmp_path)]) == 2
    assert "nothing ran in this recording" in capsys.readouterr().err


def test_names_cannot_control_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorder = recorded_steps()
    for event in recorder.events:
        event["name"] = event["name"].replace("Net_0", "Net\x1b[31m\n_0")
    recorder.inspected(tmp_path)
    assert "\x1b" not in run(capsys, str(tmp_path))
