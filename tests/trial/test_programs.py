"""Trials of real programs, and of programs that cannot be tried."""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tb_bottleneck.__main__ import main
from tb_bottleneck.commands import try_change
from tb_bottleneck.trial.programs import program_of


@pytest.mark.parametrize(
    ("command", "program"),
    [
        (["python", "train.py", "--x"], ("train.py", "--x")),
        (["python3", "-u", "-m", "package.train"], ("-m", "package.train")),
        (["train.py"], ("train.py",)),
    ],
)
def test_the_program_of_a_command(command: list[str], program: tuple[str, ...]) -> None:
    assert program_of(command) == (sys.executable, program)


@pytest.mark.parametrize("command", [[], ["torchrun", "train.py"], ["python"], ["python", "-c", "pass"]])
def test_other_commands_are_refused_with_a_reason(command: list[str]) -> None:
    with pytest.raises(ValueError, match="python"):
        program_of(command)


PROGRAM = """
import sys, time, torch
from torch.utils.data import DataLoader, Dataset

class Slow(Dataset):
    def __len__(self): return 100000
    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.ones(8)

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
print("wrote", file=open("log.txt", "w"))
for batch in DataLoader(Slow(), 8):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
"""


@pytest.mark.nightly
def test_workers_for_a_slow_data_set_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "train.py"
    script.write_text(PROGRAM)
    before = hashlib.sha256(script.read_bytes()).digest()
    status = main(
        ["try", "workers=2", "--seconds", "0.4", "--json", "--patch-out", "fix.diff", "--", "python", "train.py"]
    )
    output = capsys.readouterr()
    assert status == 0, output.err
    result = json.loads(output.out.splitlines()[0])
    (changed,) = result["changed"]
    assert changed["verdict"] == "faster"
    assert changed["gain"] > 1.3
    assert changed["losses"]["agree"]
    assert changed["parts_ns"]["loader_wait"] < result["before"]["parts_ns"]["loader_wait"]
    assert hashlib.sha256(script.read_bytes()).digest() == before
    assert "+for batch in DataLoader(Slow(), 8, num_workers=2):" in (tmp_path / "fix.diff").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"train.py", "log.txt", "runs", "fix.diff"}
    assert main(["review", "runs"]) == 0
    assert "measured" in capsys.readouterr().out
    assert main(["review", "runs", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["change"], row["because"]) == ("workers=2", "No finding suggested this change.")
    assert row["measured"]["speedup"] == pytest.approx(changed["gain"], rel=1e-3)
    assert main(["try", "workers=2", "--resume", "--seconds", "1", "--", "python", "train.py"]) == 2
    assert "no unfinished trial" in capsys.readouterr().err


BRANCH = """
import torch
import settings

weights = torch.nn.Parameter(torch.ones(8))
optimizer = torch.optim.SGD([weights], 0.1)
for _ in range(10_000):
    settings.wait()
    weights.square().sum().backward()
    optimizer.step()
"""


@pytest.mark.nightly
@pytest.mark.parametrize("installed", [False, True])
def test_an_edit_on_a_branch_is_measured_also_by_an_absolute_path(
    installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Modules that are not imported from the copy, as those of an editable installation, are named."""
    pytest.importorskip("torch")
    library = tmp_path / ("library" if installed else ".")
    library.mkdir(exist_ok=True)
    (tmp_path / "train.py").write_text(BRANCH)
    monkeypatch.chdir(tmp_path)
    for text, branch in (("0.02", "slow"), ("0.005", "fast")):
        (library / "settings.py").write_text(f"import time\n\n\ndef wait():\n    time.sleep({text})\n")
        for command in (["init", "-q"], ["checkout", "-qb", branch], ["add", "-A"], ["commit", "-qm", branch]):
            identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
            subprocess.run(["git", *identity, *command], cwd=tmp_path, check=True)
    subprocess.run(["git", "checkout", "-q", "slow"], cwd=tmp_path, check=True)
    if installed:
        monkeypatch.setenv("PYTHONPATH", str(library))
    script = str(tmp_path / "train.py")
    assert main(["try", "--rev", "fast", "--seconds", "0.4", "--minutes", "2", "--json", "--", "python", script]) == 0
    (changed,) = json.loads(capsys.readouterr().out.splitlines()[0])["changed"]
    assert changed["uncopied"] == (["library/settings.py"] if installed else [])
    assert (changed["verdict"] == "faster") != installed


WORKERS = """
import os, torch
from torch.utils.data import DataLoader

weights = torch.nn.Parameter(torch.ones(8))
optimizer = torch.optim.SGD([weights], 0.1)
for step, batch in enumerate(DataLoader(torch.ones(1_000_000, 8), 8, num_workers=2)):
    (weights * batch).sum().backward()
    optimizer.step()
    if step == 50:
        open(f"began{os.getpid()}", "w").close()
"""


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
@pytest.mark.parametrize(
    ("program", "started"),
    [
        ("import time\nopen('began', 'w').close()\ntime.sleep(600)\n", 1),
        pytest.param(WORKERS, 2, marks=pytest.mark.nightly),
    ],
    ids=["before the first step", "in turns, with stopped workers"],
)
def test_a_killed_trial_leaves_no_process_behind(program: str, started: int, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(program)
    command = [sys.executable, "-m", "tb_bottleneck", "try", "tf32", "--", "python", "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as trial:
        wait_until(lambda: len(list(tmp_path.glob("began*"))) >= started)
        children = children_of(trial.pid)
        children += [worker for child in children for worker in children_of(child)]
        trial.kill()
    assert len(children) >= 2
    wait_until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))
    assert {path.name[:5] for path in tmp_path.iterdir()} == {"train", "began"}


def wait_until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def children_of(process: int) -> list[int]:
    return [
        int(word)
        for path in Path(f"/proc/{process}/task").iterdir()
        for word in (path / "children").read_text().split()
    ]


@pytest.mark.parametrize(
    ("program", "because"),
    [
        ("raise ValueError('no data')", "ValueError: no data"),
        pytest.param("input()", "EOFError", marks=pytest.mark.nightly),
        ("import torch\nprint('done')", "made no step"),
        pytest.param("import sys\nsys.exit(3)", "status 3", marks=pytest.mark.nightly),
    ],
    ids=["raises", "reads stdin", "ends early", "exits"],
)
def test_programs_that_cannot_be_measured_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: str, because: str
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(program)
    assert main(["try", "tf32", "--seconds", "1", "--", "python", "train.py"]) == 1
    assert because in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "because"),
    [
        pytest.param("workers=2", "no DataLoader", marks=pytest.mark.nightly),
        ("compile", "no module"),
        pytest.param("set_to_none", "did not call zero_grad", marks=pytest.mark.nightly),
    ],
)
def test_a_change_that_nothing_uses_is_named_after_one_block(
    change: str, because: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "settings.py").write_text("def wait():\n    pass\n")
    (tmp_path / "train.py").write_text(BRANCH)
    main(["try", change, "--seconds", "0.2", "--json", "--", "python", "train.py"])
    (changed,) = json.loads(capsys.readouterr().out.splitlines()[0])["changed"]
    assert changed["failure"].startswith("The change had no effect")
    assert because in changed["failure"]


def test_wrong_usage_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments, because in (
        (["workers=4"], "there is no command"),
        (["workers=4", "--", "python", "absent.py"], "no such script"),
        (["--patch", "absent.diff", "--", "python", str(Path(__file__))], "no such patch: absent.diff"),
    ):
        assert main(["try", *arguments]) == 2
        assert because in capsys.readouterr().err


@pytest.mark.parametrize("plan", [[], ["--plan"]])
def test_without_a_change_the_program_is_recorded_first_and_its_fixes_are_tried(
    plan: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Here the program makes no step, so that its recording has no finding."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("open('ran', 'w').close()\n")
    assert main(["try", *plan, "--", "python", "train.py"]) == 2
    told = capsys.readouterr().err
    assert "No recording of the program was found. It is recorded for at most 60 s." in told
    assert (tmp_path / "ran").exists()
    assert "no recording of this program under runs has a finding" in told


@pytest.mark.nightly
def test_a_program_that_trains_on_is_recorded_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(try_change, "RECORDED_SECONDS", 15)
    (tmp_path / "train.py").write_text(PROGRAM)
    main(["try", "--minutes", "0.5", "--", "python", "train.py"])
    assert list(tmp_path.rglob("*.pt.trace.json.gz"))
    assert "expected" in capsys.readouterr().err
