"""The problems of the memory that the demo contains are named, their fixes are clean, and a predicted peak is right."""

from pathlib import Path

import pytest

from demo import memory_table
from demo.pairs import PAIRS, RECORDED
from tb_bottleneck.__main__ import main

ROWS = {row.pair.name: row for row in memory_table.rows(RECORDED)}


def test_all_problems_of_the_memory_are_recorded() -> None:
    assert ROWS.keys() == {pair.name for pair in PAIRS.values() if pair.memory}


@pytest.mark.parametrize("name", [pair.name for pair in PAIRS.values() if pair.memory])
def test_the_problem_is_named_and_its_fix_is_clean(name: str) -> None:
    row = ROWS[name]
    assert row.pair.memory in [finding.cause for finding in row.slow.findings]
    assert not [finding for finding in row.fixed.findings if finding.severity != "info"]
    assert row.fixed.peak_bytes < row.slow.peak_bytes


@pytest.mark.parametrize(
    ("name", "place"), [("growing_memory", "growing_memory.py:27 train"), ("retained_graph", "validation_loss")]
)
def test_the_place_that_leaves_memory_behind_is_named(name: str, place: str) -> None:
    (finding,) = [each for each in ROWS[name].slow.findings if each.cause == name]
    assert any(place in row.text for row in finding.evidence)


@pytest.mark.parametrize("name", ["growing_memory", "retained_graph"])
def test_the_report_of_the_training_leads_with_it(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", str(RECORDED / name / "slow")]) == 0
    report = capsys.readouterr().out.split("─\n", 1)[1]
    assert report.startswith("Keep numbers instead of tensors")
    assert report.count("Keep numbers instead of tensors") == 1
    assert f"\n{ROWS[name].slow.findings[0].title} [{name}], " in report


def test_the_peak_with_checkpointing_is_predicted_from_the_first_variant() -> None:
    row = ROWS["activation_checkpointing"]
    assert row.predicted == pytest.approx(row.fixed.peak_bytes, rel=0.1)


def test_the_table_has_a_row_for_each(tmp_path: Path) -> None:
    lines = memory_table.lines_of(list(ROWS.values()))
    assert [line.split(" | ")[0].strip("| ") for line in lines[2:]] == list(ROWS)
    assert memory_table.lines_of(list(memory_table.rows(tmp_path))) == []
