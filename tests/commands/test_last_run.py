"""A run that no longer has the finding of the last run of its program gives that finding its measured gain."""

import shutil
from pathlib import Path

import pytest

from demo.pairs import RECORDED
from tb_bottleneck.__main__ import main
from tb_bottleneck.commands.last_run import gain_since_last_run
from tb_bottleneck.diagnosis.telemetry import diagnose_telemetry
from tb_bottleneck.report.digest import step_ns_of
from tb_bottleneck.review.notes import Action
from tb_bottleneck.review.store import read_notes
from tb_bottleneck.schema import bottleneck_pb2 as pb

PAIR = RECORDED / "loader_in_main_process"
SLOW, FAST = "tb_bottleneck/20260101-000000_rank0_1", "tb_bottleneck/20260101-000100_rank0_2"
CAUSE = "loader_in_main_process"


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    for variant, name in (("slow", SLOW), ("fixed", FAST)):
        (folder,) = (PAIR / variant / "tb_bottleneck").iterdir()
        shutil.copytree(folder, tmp_path / name)
    return tmp_path


def report_of(folder: Path) -> pb.Report:
    (path,) = folder.glob("events.out.tfevents.*")
    return diagnose_telemetry(str(path))


def test_the_finding_is_fixed_and_has_the_measured_gain(logdir: Path) -> None:
    after = report_of(logdir / FAST)
    line = gain_since_last_run(str(logdir), logdir / FAST, after)
    ratio = (step_ns_of(report_of(logdir / SLOW)) or 0) / (step_ns_of(after) or 1)
    assert f"Since 20260101-000000_rank0_1, without [{CAUSE}]: {ratio:.2f}x as fast (" in line
    notes = read_notes(str(logdir)).notes
    assert [(each.action, each.subject, each.cause, each.fixed_in) for each in notes] == [
        (Action.TRIED, SLOW, CAUSE, FAST),
        (Action.FIXED, SLOW, CAUSE, FAST),
    ]
    assert notes[0].text.startswith(f"{ratio:.3f}x (")


def same_finding(after: pb.Report) -> None:
    after.findings.add(cause=CAUSE)


def other_program(after: pb.Report) -> None:
    after.program = "other-program"


def other_batch(after: pb.Report) -> None:
    after.efficiency.samples_per_step *= 2


def other_device(after: pb.Report) -> None:
    after.device.name = "another"


@pytest.mark.parametrize("change", [same_finding, other_program, other_batch, other_device])
def test_nothing_is_measured_if_the_runs_cannot_be_compared(logdir: Path, change: object) -> None:
    after = report_of(logdir / FAST)
    assert callable(change)
    change(after)
    assert gain_since_last_run(str(logdir), logdir / FAST, after) == ""
    assert not read_notes(str(logdir)).notes


def test_an_empty_run_between_them_and_a_full_disk_do_no_harm(logdir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (logdir / "tb_bottleneck" / "20260101-000030_rank0_3").mkdir()
    (logdir / ".tb_bottleneck_review").write_text("no folder")  # as little writable as a full disk
    assert main(["diagnose", "--lines", "11", "--ledger", str(logdir), str(logdir / FAST)]) == 0
    assert "Everything that was found" in capsys.readouterr().out
    (logdir / ".tb_bottleneck_review").unlink()
    assert main(["diagnose", "--lines", "11", "--ledger", str(logdir), str(logdir / FAST)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("Since 20260101-000000_rank0_1")


def test_the_first_run_has_nothing_before_it(logdir: Path) -> None:
    assert gain_since_last_run(str(logdir), logdir / SLOW, report_of(logdir / SLOW)) == ""
    assert not read_notes(str(logdir)).notes
