"""Trials in turn, with blocks that a test makes up, and with real programs."""

import csv
import hashlib
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tb_bottleneck.__main__ import main
from tb_bottleneck.monitor.facts.process import program_hash
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trial import plan
from tb_bottleneck.trial.block_runner import BlockFailed, BlockResult, program_of
from tb_bottleneck.trial.changes import Change, parsed
from tb_bottleneck.trial.plan import expectations, plan_lines, run_plan
from tb_bottleneck.trial.report import json_of, text_of
from tb_bottleneck.trial.saved import SavedBlocks
from tb_bottleneck.trial.statistics import LOOK_AHEAD
from tb_bottleneck.trial.trial import Trial, run_trial

PARTS = ("loader_wait", "forward", "backward", "optimizer", "evaluation", "checkpoint", "logging", "garbage_collection")


class Blocks:
    """Blocks of made-up programs: the step in ms by the names of settings; each block takes ten seconds."""

    def __init__(
        self, steps: dict[str, float], failing: str = "", interrupt_after: int = 1000, noise: float = 0.002
    ) -> None:
        self.steps, self.failing, self.interrupt_after, self.noise = steps, failing, interrupt_after, noise
        self.order: list[str] = []
        self.now = 0.0
        self.samples = 8.0

    def clock(self) -> float:
        return self.now

    def run(self, change: Change, is_over: Callable[[], bool]) -> BlockResult:
        number = len(self.order)
        if len(self.order) >= self.interrupt_after:
            raise KeyboardInterrupt
        self.now += 10
        self.order.append(change.name)
        if change.name == self.failing:
            raise BlockFailed("it ended with status 3")
        step = 1e6 * 20.0
        for name, _ in change.settings:
            step *= self.steps[name]
        step *= 1 + self.noise * (number % 3)
        parts = dict.fromkeys(PARTS, 0.0) | {"loader_wait": step / 2, "other": step / 2}
        return BlockResult(step, 100, self.samples, parts, (1.0,) * 20, 1 << 20, Path("block"))


def trial_of(blocks: Blocks, *words: str, deadline: float = 1e9) -> Trial:
    return run_trial(blocks, parsed(words), deadline, clock=blocks.clock)


def test_blocks_alternate_and_end_as_soon_as_the_gain_is_known() -> None:
    blocks = Blocks({"tf32": 0.5})
    trial = trial_of(blocks, "tf32")
    assert blocks.order == ["unchanged", "tf32", "tf32", "unchanged", "unchanged", "tf32"]
    gain = trial.gain(trial.changed[0])
    assert gain is not None
    assert (gain.verdict, round(gain.gain, 1)) == ("faster", 2.0)
    text = "\n".join(text_of(trial))
    assert "tf32: 1.99x as fast" in text
    assert "losses agree" in text
    assert "waiting for data: 10.0 ms -> 5.0" in text.replace("5.01", "5.0")
    json.dumps(json_of(trial), allow_nan=False)


def test_steps_whose_samples_are_not_known_are_called_that() -> None:
    """Another batch size is not slower because its steps do more work."""
    changes = [Change(arguments=("--batch-size", "64")), *parsed(["tf32"])]
    blocks = Blocks({"tf32": 0.5})
    for samples, said in ((0.0, True), (8.0, False)):
        blocks.samples = samples
        texts = ["\n".join(text_of(run_trial(blocks, [change], 1e9, clock=blocks.clock))) for change in changes]
        assert ["samples per step are not known" in text for text in texts] == [said, False]


def test_several_values_are_a_curve_and_a_known_one_takes_no_more_part() -> None:
    blocks = Blocks({"workers": 0.5})
    trial = trial_of(blocks, "workers=2,4")
    assert [trial.gain(variant).verdict for variant in trial.changed] == ["faster", "faster"]  # type: ignore[union-attr]
    assert blocks.order.count("unchanged") == 3


def test_the_time_ends_a_trial_that_is_not_known() -> None:
    blocks = Blocks({"tf32": 0.97})
    trial = trial_of(blocks, "tf32", deadline=45)
    assert blocks.now <= 45
    assert not trial.is_finished


def test_a_trial_that_cannot_become_known_in_its_time_ends_early() -> None:
    blocks = Blocks({"tf32": 1.0}, noise=1.0)
    trial = trial_of(blocks, "tf32", deadline=150)
    assert len(trial.before.blocks) == LOOK_AHEAD
    assert blocks.now == 100


def test_a_trial_goes_on_with_the_blocks_of_one_that_was_interrupted(tmp_path: Path) -> None:
    first = Blocks({"tf32": 0.5}, interrupt_after=3)
    assert run_trial(SavedBlocks(first, tmp_path), parsed(["tf32"]), 1e9).interrupted
    with (tmp_path / "blocks.jsonl").open("a") as file:
        file.write('{"change": "tf')  # killed while it wrote
    second = Blocks({"tf32": 0.5})
    runner = SavedBlocks(second, tmp_path)
    assert runner.load() == 3
    trial = run_trial(runner, parsed(["tf32"]), 1e9)
    assert (first.order, second.order) == (["unchanged", "tf32", "tf32"], ["unchanged", "unchanged", "tf32"])
    assert len(trial.before.blocks) == len(trial.changed[0].blocks) == 3
    assert trial.changed[0].blocks[0].losses == (1.0,) * 20


def test_saved_blocks_of_another_course_are_not_used(tmp_path: Path) -> None:
    run_trial(SavedBlocks(Blocks({"tf32": 0.5}), tmp_path), parsed(["tf32"]), 1e9)
    other = Blocks({"fused": 0.5})
    runner = SavedBlocks(other, tmp_path)
    runner.load()
    run_trial(runner, parsed(["fused"]), 1e9)
    assert other.order[:2] == ["fused", "fused"]


def test_a_saved_failure_is_a_failure_again(tmp_path: Path) -> None:
    run_trial(SavedBlocks(Blocks({"tf32": 1.0}, failing="tf32"), tmp_path), parsed(["tf32"]), 1e9)
    runner = SavedBlocks(Blocks({"tf32": 1.0}), tmp_path)
    runner.load()
    assert "status 3" in run_trial(runner, parsed(["tf32"]), 1e9).changed[0].failure


def test_an_interrupt_keeps_what_is_known() -> None:
    trial = trial_of(Blocks({"tf32": 0.5}, interrupt_after=4), "tf32")
    assert trial.interrupted
    assert trial.gain(trial.changed[0]) is not None


def test_a_changed_program_that_fails_is_named_and_an_unchanged_one_ends_the_trial() -> None:
    trial = trial_of(Blocks({"tf32": 0.5, "fused": 0.5}, failing="tf32"), "tf32")
    assert "tf32: not measured. it ended with status 3" in "\n".join(text_of(trial))
    with pytest.raises(BlockFailed):
        trial_of(Blocks({"tf32": 0.5}, failing="unchanged"), "tf32")


def test_a_plan_keeps_what_helps() -> None:
    def finding(cause: str, trial: str, gain: float) -> pb.Finding:
        speedup = pb.Speedup(expected=gain, low=gain - 0.1, high=gain + 0.1, basis="replay" if gain > 1 else "none")
        return pb.Finding(cause=cause, title=cause, fix=pb.Fix(trial=trial), speedup=speedup)

    report = pb.Report(
        findings=[finding("a", "fused", 1.1), finding("b", "tf32", 2.0), finding("c", "--rev BRANCH --cause c", 1.0)]
    )
    blocks = Blocks({"tf32": 0.5, "fused": 1.001})
    steps = list(run_plan(blocks, expectations(report, "run"), 1e9, lambda *_: None, blocks.clock))
    assert [(step.expectation.cause, step.kept) for step in steps] == [("b", True), ("a", False), ("c", False)]
    assert "tf32 fused" in blocks.order, "the second is tried on top of the first"
    lines = "\n".join(plan_lines(steps))
    assert "tf32: 2.00x expected (1.90 to 2.10); 1.99x measured, faster, kept" in lines
    assert "no setting fixes it: no gain predicted; not measured" in lines


def recordings_of(
    programs: dict[str, str], folder: Path, monkeypatch: pytest.MonkeyPatch, without: str = ""
) -> list[tuple[str, str]]:
    """Makes recordings of programs by run, the newest last; each finds what its run is called."""
    for number, run in enumerate(programs):
        (folder / run).write_bytes(b"")
        os.utime(folder / run, (number, number))

    def diagnosed(path: str) -> pb.Report:
        run = Path(path).name
        findings = [pb.Finding(cause=run)] if run != without else []
        return pb.Report(findings=findings, program=programs[run] or None)

    monkeypatch.setattr(plan, "diagnose_recording", diagnosed)
    return [(str(folder / run), run) for run in programs]


SAME = program_hash("work/train.py", ["--epochs", "3"])
OTHER_ARGUMENTS = program_hash("train.py", ["--epochs", "4"])
OTHER = program_hash("evaluate.py", ["--epochs", "3"])


@pytest.mark.parametrize(
    ("programs", "chosen"),
    [
        ({"same": SAME, "arguments": OTHER_ARGUMENTS, "other": OTHER, "unknown": ""}, "same"),
        ({"older": SAME, "newer": SAME}, "newer"),
        ({"arguments": OTHER_ARGUMENTS, "other": OTHER, "unknown": ""}, "arguments"),
        ({"unknown": "", "other": OTHER}, "unknown"),
        ({"other": OTHER}, None),
        ({"same": SAME, "empty": SAME}, "same"),
    ],
)
def test_the_expected_gain_is_that_of_the_same_program(
    programs: dict[str, str], chosen: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recordings = recordings_of(programs, tmp_path, monkeypatch, without="empty")
    found = plan.newest_expectations(recordings, ("elsewhere/train.py", "--epochs", "3"))
    assert [each.run for each in found] == ([] if chosen is None else [chosen])


@pytest.mark.parametrize(
    ("program", "path"), [(("-m", "package.train"), "x/package/train.py"), (("-m", "package"), "x/package/__main__.py")]
)
def test_a_module_is_the_file_that_python_runs(
    program: tuple[str, ...], path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recordings = recordings_of({"run": program_hash(path, [])}, tmp_path, monkeypatch)
    assert plan.newest_expectations(recordings, program)


def test_the_report_names_modules_that_the_change_does_not_reach() -> None:
    trial = trial_of(Blocks({"tf32": 0.5}), "tf32")
    trial.changed[0].blocks[-1] = replace(trial.changed[0].blocks[-1], uncopied=("src/model.py", "src/data.py"))
    assert "src/model.py and 1 more were imported from the work tree itself" in "\n".join(text_of(trial))


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


@pytest.mark.slow
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
    assert main(["review", "runs", "--csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["change"], row["because"]) == ("workers=2", "No finding suggested this change.")
    assert float(row["measured_speedup"]) == pytest.approx(changed["gain"], rel=1e-3)
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


@pytest.mark.slow
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
    assert main(["try", "--rev", "fast", "--seconds", "0.4", "--minutes", "0.6", "--json", "--", "python", script]) == 0
    (changed,) = json.loads(capsys.readouterr().out.splitlines()[0])["changed"]
    assert changed["uncopied"] == (["library/settings.py"] if installed else [])
    assert (changed["verdict"] == "faster") != installed


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")
def test_a_killed_trial_leaves_no_process_behind(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text("import time\nopen('began', 'w').close()\ntime.sleep(600)\n")
    command = [sys.executable, "-m", "tb_bottleneck", "try", "tf32", "--", "python", "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as trial:
        wait_until((tmp_path / "began").exists)
        (child,) = children_of(trial.pid)
        trial.kill()
    wait_until(lambda: not Path(f"/proc/{child}").exists())
    assert {path.name for path in tmp_path.iterdir()} == {"train.py", "began"}


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "because"),
    [
        ("raise ValueError('no data')", "ValueError: no data"),
        ("input()", "EOFError"),
        ("import torch\nprint('done')", "made no step"),
        ("import sys\nsys.exit(3)", "status 3"),
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "because"),
    [
        ("workers=2", "no DataLoader"),
        ("compile", "no module"),
        ("foreach", ""),
        ("set_to_none", "did not call zero_grad"),
    ],
)
def test_a_change_that_nothing_uses_is_named_after_one_block(
    change: str, because: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "settings.py").write_text("def wait():\n    pass\n")
    (tmp_path / "train.py").write_text(BRANCH)
    main(["try", change, "--seconds", "0.2", "--minutes", "0.2", "--json", "--", "python", "train.py"])
    (changed,) = json.loads(capsys.readouterr().out.splitlines()[0])["changed"]
    assert because in changed["failure"]
    assert bool(because) == changed["failure"].startswith("The change had no effect")


def test_wrong_usage_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments, because in (
        (["workers=4"], "there is no command"),
        (["workers=4", "--", "python", "absent.py"], "no such script"),
        (["--", "python", str(Path(__file__))], "there is no change to try"),
        (["--patch", "absent.diff", "--", "python", str(Path(__file__))], "no such patch: absent.diff"),
        (["--plan", "--", "python", str(Path(__file__))], "no recording of this program with a finding"),
    ):
        assert main(["try", *arguments]) == 2
        assert because in capsys.readouterr().err
