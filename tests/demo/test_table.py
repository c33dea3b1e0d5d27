"""The table compares the prediction from the slow variant with the measured time of the fixed variant."""

from pathlib import Path

import pytest

from demo import table
from demo.pairs import PAIRS
from tb_bottleneck.bottlenecks.registry import scenarios
from tb_bottleneck.schema import bottleneck_pb2 as pb


def report(cause: str, regime: str, speedup: float, basis: str) -> pb.Report:
    made = pb.Report(verdict=pb.Verdict(regime=regime, share=0.5, severity="critical"))
    made.findings.add(cause=cause, regime=regime, speedup=pb.Speedup(expected=speedup, basis=basis))
    return made


def row(speedup: float, basis: str = "replay", cause: str = "loader_in_main_process") -> table.PairResult:
    return table.PairResult(
        pair=PAIRS["loader_in_main_process"],
        device="a CPU",
        slow=report(cause, "input", speedup, basis),
        fixed=report("", "compute", 1.0, "none"),
        before_ns=80e6,
        after_ns=50e6,
    )


def test_a_prediction_is_compared_with_the_measured_step() -> None:
    one = row(2.0)
    assert one.predicted_ns == pytest.approx(40e6)
    assert one.error == pytest.approx(-0.2)


def test_a_bound_is_no_prediction() -> None:
    one = row(2.0, "bound")
    assert one.predicted_ns is None
    assert one.error is None


def test_the_gain_of_another_fix_is_no_prediction_of_this_one() -> None:
    assert row(2.0, cause="too_few_workers").predicted_ns is None


def test_the_table_contains_every_pair_and_the_errors() -> None:
    lines = table.lines_of([row(2.0), row(1.6), row(3.0, "none")])
    assert lines[2].startswith(
        "| loader_in_main_process | a CPU | input | input 50% (critical) | compute 50% (critical)"
    )
    assert "| 80.0 ms | 40.0 ms | 50.0 ms | -20% |" in lines[2]
    assert "none replayed" in lines[4]
    assert lines[-1] == "Errors of 2 predictions: median 10%, worst 20%."


def test_a_logdir_without_recordings_gives_an_empty_table(tmp_path: Path) -> None:
    assert list(table.rows(tmp_path)) == []


def test_it_is_put_into_the_readme_in_place_of_the_older_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{table.BEGIN}\nolder\n{table.END}\nafter\n")
    monkeypatch.setattr(table, "README", readme)
    assert table.main(["--write", "--logdir", str(tmp_path)]) == 0
    text = readme.read_text()
    assert "older" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| problem |" in text


def test_the_causes_that_pairs_fix_can_be_replayed() -> None:
    causes = {cause for pair in PAIRS.values() for cause in pair.fixed_causes.split(" or ") if cause}
    assert causes <= set(scenarios())
