"""Trials in turn, with blocks that a test makes up, and with real programs."""

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tb_bottleneck.__main__ import main
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trial.blocks import BlockFailed, BlockResult, program_of
from tb_bottleneck.trial.changes import Change, parsed
from tb_bottleneck.trial.plan import expectations, plan_lines, run_plan
from tb_bottleneck.trial.report import json_of, text_of
from tb_bottleneck.trial.trial import Trial, run_trial

PARTS = ("loader_wait", "forward", "backward", "optimizer", "evaluation", "checkpoint", "logging", "garbage_collection")


class Blocks:
    """Blocks of made-up programs: the step in ms by the names of settings; each block takes ten seconds."""

    def __init__(self, steps: dict[str, float], failing: str = "", interrupt_after: int = 1000) -> None:
        self.steps, self.failing, self.interrupt_after = steps, failing, interrupt_after
        self.order: list[str] = []
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def run(self, change: Change, number: int, is_over: Callable[[], bool]) -> BlockResult:
        if len(self.order) >= self.interrupt_after:
            raise KeyboardInterrupt
        self.now += 10
        self.order.append(change.name)
        if change.name == self.failing:
            raise BlockFailed("it ended with status 3")
        step = 1e6 * 20.0
        for name, _ in change.settings:
            step *= self.steps[name]
        step *= 1 + 0.002 * (number % 3)
        parts = dict.fromkeys(PARTS, 0.0) | {"loader_wait": step / 2, "other": step / 2}
        return BlockResult(step, 100, 8.0, parts, (1.0,) * 20, 1 << 20, Path("block"))


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


def test_several_values_are_a_curve_and_a_known_one_takes_no_more_part() -> None:
    blocks = Blocks({"workers": 0.5})
    trial = trial_of(blocks, "workers=2,4")
    assert [trial.gain(variant).verdict for variant in trial.changed] == ["faster", "faster"]  # type: ignore[union-attr]
    assert blocks.order.count("unchanged") == 3


def test_the_time_ends_a_trial_that_is_not_known() -> None:
    blocks = Blocks({"tf32": 0.97})
    trial = trial_of(blocks, "tf32", deadline=45)
    assert blocks.now <= 45
    assert not trial.is_known


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

    report = pb.Report(findings=[finding("a", "fused", 1.1), finding("b", "tf32", 2.0), finding("c", "", 1.0)])
    blocks = Blocks({"tf32": 0.5, "fused": 1.001})
    steps = list(run_plan(blocks, expectations(report, "run"), 1e9, lambda *_: None, blocks.clock))
    assert [(step.expectation.cause, step.kept) for step in steps] == [("b", True), ("a", False), ("c", False)]
    assert "tf32 fused" in blocks.order, "the second is tried on top of the first"
    lines = "\n".join(plan_lines(steps))
    assert "tf32: 2.00x expected (1.90 to 2.10); 1.99x measured, faster, kept" in lines
    assert "no setting fixes it: no gain predicted; not measured" in lines


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
        ["try", "workers=2", "--seconds", "1", "--json", "--patch-out", "fix.diff", "--", "python", "train.py"]
    )
    output = capsys.readouterr()
    assert status == 0, output.err
    result = json.loads(output.out.splitlines()[0])
    (changed,) = result["changed"]
    assert changed["verdict"] == "faster"
    assert 1.6 < changed["gain"] < 2.6
    assert changed["losses"]["agree"]
    assert changed["parts_ns"]["loader_wait"] < result["before"]["parts_ns"]["loader_wait"]
    assert hashlib.sha256(script.read_bytes()).digest() == before
    assert "+for batch in DataLoader(Slow(), 8, num_workers=2):" in (tmp_path / "fix.diff").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"train.py", "log.txt", "runs", "fix.diff"}
    assert main(["review", "runs"]) == 0
    assert "measured" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "because"),
    [
        ("raise ValueError('no data')", "ValueError: no data"),
        ("input()", "EOFError"),
        ("import torch\nprint('done')", "made no step"),
        ("import sys\nsys.exit(3)", "status 3"),
    ],
)
def test_programs_that_cannot_be_measured_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], program: str, because: str
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(program)
    assert main(["try", "tf32", "--seconds", "1", "--", "python", "train.py"]) == 1
    assert because in capsys.readouterr().err


def test_wrong_usage_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments, because in (
        (["workers=4"], "there is no command"),
        (["workers=4", "--", "python", "absent.py"], "no such script"),
        (["--", "python", str(Path(__file__))], "there is no change to try"),
        (["--plan", "--", "python", str(Path(__file__))], "no recording with a finding"),
    ):
        assert main(["try", *arguments]) == 2
        assert because in capsys.readouterr().err
