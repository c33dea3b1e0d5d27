"""The table of a sweep compares the times expected from its first run with the measured times."""

import json
from pathlib import Path

import pytest

from demo import sweeps
from demo.pairs import RECORDED
from tb_bottleneck.schema.comparison_pb2 import Prediction


def test_an_expected_time_is_the_first_one_over_the_speedup() -> None:
    first = sweeps.SweepRun("loader_workers", 0, 90e6, 90e6, None)
    second = sweeps.SweepRun("loader_workers", 2, 50e6, 90e6, Prediction(speedup=2.0, low=1.5, high=2.5))
    assert first.error is None
    assert second.error == pytest.approx(-0.1)
    lines = sweeps.lines_of([first, second])
    assert lines[2] == "| loader_workers | 0 | 90.0 ms |  |  |  |"
    assert lines[3] == "| loader_workers | 2 | 50.0 ms | 45.0 ms | 36.0 ms to 60.0 ms | -10% |"


def test_where_nothing_was_swept_there_is_no_table(tmp_path: Path) -> None:
    assert sweeps.lines_of(list(sweeps.runs(tmp_path))) == []


def test_a_sweep_without_its_first_run_is_left_out(tmp_path: Path) -> None:
    pairs = {"loader_workers": {"2_workers": {"trace": "t.json", "unprofiled": {"ns_per_step": 1}}}}
    (tmp_path / "recorded.json").write_text(json.dumps({"pairs": pairs}))
    assert list(sweeps.runs(tmp_path)) == []


def test_the_recorded_sweep_is_expected_from_its_first_run() -> None:
    swept = [run for run in sweeps.runs(RECORDED) if run.sweep == "loader_workers"]
    assert [run.workers for run in swept] == [0, 2, 4, 8]
    assert swept[0].prediction is None
    assert all(run.prediction is not None and run.prediction.speedup > 1 for run in swept[1:])
