"""The recording whose findings a trial is compared with: the newest one of the same program."""

import os
from pathlib import Path

import pytest

from tb_bottleneck.monitor.facts.process import program_hash
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trial import plan


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
