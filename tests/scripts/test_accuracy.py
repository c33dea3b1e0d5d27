"""The accuracy page counts the answers and lists every miss."""

from dataclasses import replace

import accuracy
import pytest
from helpers.real_pairs import NO_FOLDER, real_pairs
from simulate.cases import Case
from simulate.examine import examine
from simulate.problems import HARD_NEGATIVES, PROBLEMS
from simulate.workload import healthy

RUNS = 10


@pytest.mark.nightly
def test_the_page_counts_every_run_and_has_a_line_for_each_kind(monkeypatch):
    for folder in ("TB_BOTTLENECK_TRACES", "TB_BOTTLENECK_PAIRS"):
        monkeypatch.delenv(folder, raising=False)
    text = "\n".join(accuracy.page(RUNS, second_runs=RUNS))
    assert f"## {RUNS} simulated trainings" in text
    assert f"| **all** | {RUNS} | {RUNS} |" in text
    assert f"## {RUNS} runs of a second simulator" in text
    assert all(f"| {name} |" in text for name in PROBLEMS)
    assert all(f"| *healthy:* {name} |" in text for name in HARD_NEGATIVES)
    assert "Not judged this time: TB_BOTTLENECK_TRACES names no folder." in text
    assert NO_FOLDER in text


def test_a_wrong_verdict_is_a_miss_and_costs_precision_and_recall():
    right = examine(healthy(3).but(contractions=1.0, loader=""))
    wrong = replace(right, report=type(right.report)())
    wrong.report.CopyFrom(right.report)
    wrong.report.verdict.regime = "input"
    cases = [Case("random", 3, right), Case("random", 4, wrong)]
    (miss,) = accuracy.misses(cases)
    assert miss.startswith("- random, seed 4 (torch 2.4): answered **input**, right: compute")
    rows = list(accuracy.verdict_table(cases))
    assert "| compute | 2 | 1 | 1 | 1.000 | 0.500 |" in rows
    assert "| input | 0 | 1 | 0 | 0.000 | - |" in rows


PUBLIC = real_pairs()


@pytest.mark.nightly
@pytest.mark.skipif(not PUBLIC, reason="TB_BOTTLENECK_PAIRS names no folder of pairs")
def test_each_counted_pair_is_compared_rightly_and_has_its_source():
    rows = [row for row in accuracy.compared(PUBLIC) if row.startswith("| ")]
    assert not [row for row in rows if "| yes | **no**" in row]
    compared = [pair for pair in PUBLIC if pair.facts.get("compare", True)]
    for pair in compared:
        assert any(row.startswith(f"| {pair.name} |") and pair.facts["source"] in row for row in rows), pair.name
