"""Tests of `tb-bottleneck compare`: text, JSON, a series of runs, and the gate with its exit status."""

import json

import pytest
from comparison.drawn_runs import recorded, repeated

from tb_bottleneck.__main__ import main

SLOW = repeated(9, loader="######....", gpu="......####")
FAST = repeated(9, workers="#.....", gpu="..####")


@pytest.fixture
def runs(tmp_path):
    for name, drawing in (("slow", SLOW), ("fast", FAST)):
        (tmp_path / name).mkdir()
        recorded(tmp_path / name, drawing)
    return str(tmp_path / "slow"), str(tmp_path / "fast")


def test_two_directories_are_two_runs(runs, capsys):
    assert main(["compare", *runs]) == 0
    assert "1.67 times as fast" in capsys.readouterr().out


def test_the_json_is_one_object(runs, capsys):
    assert main(["compare", *runs, "--json"]) == 0
    comparison = json.loads(capsys.readouterr().out)
    assert comparison["speedup"] == pytest.approx(10 / 6, rel=0.01)
    assert (comparison["a"], comparison["b"]) == runs


def test_three_runs_are_a_series(runs, capsys):
    assert main(["compare", runs[0], *runs, "--json"]) == 0
    series = json.loads(capsys.readouterr().out)
    assert series["kind"] == "settings"
    assert [len(point["runs"]) for point in series["points"]] == [2, 1], "the same run twice is a repeat"


def test_the_gate_opens_for_a_faster_run_and_not_for_a_slower_one(runs, capsys):
    assert main(["compare", *runs, "--fail-slower", "5%"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["compare", *reversed(runs), "--fail-slower", "5%"]) == 1
    assert "B is 67 % slower than A" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--fail-slower", "lots"], []])
def test_wrong_usage_is_2(runs, capsys, arguments):
    paths = [runs[0]] if not arguments else list(runs)
    assert main(["compare", *paths, *arguments]) == 2
    assert capsys.readouterr().err.startswith("tb-bottleneck: ")


def test_a_run_that_is_not_there_is_2(runs, capsys):
    assert main(["compare", runs[0], "/no/such/run"]) == 2
    assert "/no/such/run" in capsys.readouterr().err


def test_a_report_that_diagnose_printed_is_a_baseline(runs, tmp_path, capsys):
    assert main(["diagnose", runs[0], "--json"]) == 0
    base = tmp_path / "base.reports.json"
    base.write_text(capsys.readouterr().out)
    assert main(["compare", str(base), runs[1]]) == 0
    assert "1.67 times as fast" in capsys.readouterr().out
    assert main(["compare", runs[1], str(base), "--fail-slower", "0.05"]) == 1
