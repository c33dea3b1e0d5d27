"""Tests of `tb-bottleneck run`: refused arguments, and that the program ends as it does without us."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

from tb_bottleneck.__main__ import main


def ran(folder: Path, *words: str, python: tuple[str, ...] = (), **more: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, *python, "-m", "tb_bottleneck", "run", "--logdir", str(folder / "logs"), *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=120, env=os.environ | more)


@pytest.mark.parametrize("error", ["BrokenPipeError(32, 'Broken pipe')", "KeyboardInterrupt()"])
def test_an_error_of_the_program_is_not_handled_as_ours(tmp_path: Path, error: str) -> None:
    """A broken pipe of a training with a dead worker was mistaken for that of `| head`: status 0 and no message."""
    (tmp_path / "train.py").write_text(f"raise {error}\n")
    done = ran(tmp_path, "train.py")
    assert done.returncode not in (0, 2)
    assert "Traceback" in done.stderr
    assert done.stderr.rstrip().splitlines()[-1].startswith(error.split("(")[0])


def test_it_says_what_to_do_next(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('trained')\n")
    done = ran(tmp_path, "train.py", TB_BOTTLENECK_QUIET="0")
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert "saw no step of this training: a step ends with optimizer.step()" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("python", "train.py", "--x"),
        ("--", "python3", "-u", "train.py", "--x"),
        ("python", "-m", "train", "--x"),
        (sys.executable, "train.py", "--x"),
    ],
)
def test_python_before_the_program_is_left_out(
    tmp_path: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tb_bottleneck.commands import run
    from tb_bottleneck.trial import programs

    started: list[object] = []
    monkeypatch.setattr(programs, "run_script", lambda script, arguments: started.append([script, *arguments]))
    monkeypatch.setattr(programs, "run_module", lambda arguments: started.append(["-m", *arguments]))
    (tmp_path / "train.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "_check_module", lambda arguments: None)
    assert main(["run", "--logdir", "logs", *words]) == 0
    assert started == [["-m", "train", "--x"] if "-m" in words else ["train.py", "--x"]]


@pytest.mark.nightly
def test_the_script_can_import_modules_next_to_it_unless_the_path_is_safe(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "train.py").write_text("import beside, sys; print(len(sys.path))\n")
    assert ran(tmp_path, "train.py").returncode == 0
    if sys.version_info >= (3, 11):
        done = ran(tmp_path, "train.py", python=("-P",))
        assert "No module named 'beside'" in done.stderr


@pytest.mark.parametrize("name", ["no_such_module", "no_such_package.train"])
def test_a_missing_module_is_one_line_and_creates_no_files(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--logdir", str(tmp_path / "logs"), "-m", name]) == 2
    assert "no module named 'no_such_" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
