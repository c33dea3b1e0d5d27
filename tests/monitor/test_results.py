"""A training ends with what limits it, on rank 0, once for each logdir, in a few lines on standard error."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tb_bottleneck.monitor import results
from tb_bottleneck.monitor.results import QUIET, tell_results

SCRIPT = """
import sys
from monitor.training import Training
from tb_bottleneck import Monitor
for _ in range(2):
    with Monitor(sys.argv[1], captures=0):
        Training().run()
"""
RUN = Path(__file__).parents[2] / "demo" / "recorded" / "loader_in_main_process" / "slow"


@pytest.fixture(autouse=True)
def loud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(QUIET)
    monkeypatch.setattr(results, "SECONDS", 60.0)  # a busy machine needs more than two
    monkeypatch.setattr(results, "_told", set())


def told(capsys: pytest.CaptureFixture[str], directory: str = str(RUN), steps: int = 9, error: str = "") -> str:
    tell_results(Path("runs"), directory, steps, error)
    assert capsys.readouterr().out == ""
    tell_results(Path("again"), directory, steps, error)
    return capsys.readouterr().err


def test_the_end_has_action_cause_line_code_and_how_to_measure_it(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys)
    assert len(text.splitlines()) <= 12
    for part in (
        "Let worker processes create the batches: about",
        "[loader_in_main_process]",
        "in demo/",
        "DataLoader(",
    ):
        assert part in text
    assert "tb-bottleneck try workers=" in text
    assert f"tb-bottleneck diagnose --full {RUN}" in text


def test_it_is_said_once_for_each_logdir(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        tell_results(Path("runs"), "no such run", 9, "")
    assert capsys.readouterr().err.count("recorded 9 steps") == 1


@pytest.mark.parametrize(
    ("steps", "error", "line"),
    [
        (0, "", "saw no step of this training"),
        (9, "ValueError", "recorded 9 steps before ValueError: tb-bottleneck diagnose"),
        (9, "KeyboardInterrupt", "recorded 9 steps before KeyboardInterrupt: tb-bottleneck diagnose"),
    ],
)
def test_without_steps_and_after_an_error_one_line_says_why(
    capsys: pytest.CaptureFixture[str], steps: int, error: str, line: str
) -> None:
    text = told(capsys, steps=steps, error=error)
    assert line in text
    assert text.count("\n") == 1


def test_sys_exit_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert "[loader_in_main_process]" in told(capsys, error="SystemExit")


def test_a_diagnosis_that_takes_too_long_is_left_to_the_user(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "SECONDS", 0.01)
    text = told(capsys)
    assert text == f"tb_bottleneck recorded 9 steps. Why they take as long as they do: tb-bottleneck diagnose {RUN}\n"


def test_it_can_be_switched_off(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(QUIET, "1")
    assert told(capsys) == ""


@pytest.mark.parametrize("rank", ["0", "1"])
def test_only_rank_0_of_a_real_training_speaks(tmp_path: Path, rank: str) -> None:
    env = {name: value for name, value in os.environ.items() if name != QUIET}
    env |= {"PYTHONPATH": os.pathsep.join(sys.path), "RANK": rank, "WORLD_SIZE": "2"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, check=True, timeout=300, env=env
    )
    assert done.stdout == ""
    assert done.stderr.count("tb-bottleneck diagnose") == (1 if rank == "0" else 0)


@pytest.mark.parametrize(("ending", "error"), [("raise ValueError", "ValueError"), ("", "")])
def test_a_monitor_that_is_not_a_context_knows_an_error_at_exit(tmp_path: Path, ending: str, error: str) -> None:
    """An error that was handled long before, as in a notebook, is none of the training."""
    script = f"""
import sys
from monitor.training import Training
from tb_bottleneck import Monitor
monitor = Monitor(sys.argv[1], captures=0)
monitor.start()
Training().run()
{ending or "sys.last_type = KeyError; monitor.stop()"}
"""
    env = {name: value for name, value in os.environ.items() if name != QUIET}
    env |= {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False, timeout=300, env=env
    )
    assert ("steps before" in done.stderr) == bool(error)
    assert f"steps before {error}" in done.stderr or not error
    assert "tb-bottleneck diagnose" in done.stderr
