"""A training's end says once where the results are, on rank 0, where the training's log or the terminal shows it."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from monitor.training import Training

from tb_bottleneck import Monitor

SCRIPT = """
import sys
from monitor.training import Training
from tb_bottleneck import Monitor
for _ in range(2):
    with Monitor(sys.argv[1], captures=0):
        Training().run()
"""


def end_of(tmp_path: Path, caplog: pytest.LogCaptureFixture, steps: bool = True) -> list[str]:
    with caplog.at_level(logging.INFO), Monitor(tmp_path, captures=0, every_s=0.1):
        if steps:
            Training().run()
    return [record.getMessage() for record in caplog.records]


def test_the_line_names_both_commands(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (line,) = end_of(tmp_path, caplog)
    assert f"tensorboard --logdir {tmp_path}, then open Bottlenecks" in line
    assert line.endswith(f"tb-bottleneck diagnose {tmp_path}")
    caplog.clear()
    assert end_of(tmp_path, caplog) == [], "once per logdir"


def test_a_name_with_a_space_is_quoted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (line,) = end_of(tmp_path / "my runs", caplog)
    assert f"--logdir '{tmp_path}/my runs'," in line


def test_other_ranks_and_empty_recordings_are_silent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert end_of(tmp_path, caplog, steps=False) == []
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert end_of(tmp_path, caplog) == []


def test_without_a_log_of_the_training_it_is_on_the_terminal_once(tmp_path: Path) -> None:
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, check=True, timeout=300, env=env
    )
    assert done.stdout == ""
    assert done.stderr.count("tb-bottleneck diagnose") == 1
