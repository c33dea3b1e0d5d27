"""Tests of `tb-bottleneck diagnose --fail-over`, a budget for CI with exit status 1 and a sentence."""

import json

import pytest
from comparison.drawn_runs import recorded, repeated

from tb_bottleneck.__main__ import main

WAITING = repeated(9, loader="######....", gpu="......####")


@pytest.mark.parametrize(("budgets", "status"), [(["input=70%"], 0), (["input=0.1"], 1), (["sync=1%", "input=5%"], 1)])
def test_a_budget_decides_the_exit_status(tmp_path, capsys, budgets, status):
    arguments = [word for budget in budgets for word in ("--fail-over", budget)]
    assert main(["diagnose", recorded(tmp_path, WAITING), *arguments]) == status
    assert ("input owns" in capsys.readouterr().err) == bool(status)


def test_the_report_is_printed_all_the_same(tmp_path, capsys):
    assert main(["diagnose", recorded(tmp_path, WAITING), "--json", "--fail-over", "input=0.1"]) == 1
    assert json.loads(capsys.readouterr().out)["reports"]


def test_an_unknown_regime_is_2(tmp_path, capsys):
    assert main(["diagnose", recorded(tmp_path, WAITING), "--fail-over", "loader=0.1"]) == 2
    assert "is not a regime" in capsys.readouterr().err


def test_a_gate_without_a_recording_fails(tmp_path, capsys):
    assert main(["diagnose", str(tmp_path), "--fail-over", "input=0.1"]) == 2
    assert "no recording was found" in capsys.readouterr().err
