"""Changes on the command line, their patches of a script, and copies of the work tree."""

import os
import subprocess
from pathlib import Path

import pytest

from tb_bottleneck.base.errors import Unusable
from tb_bottleneck.bottlenecks.texts import EDIT, cause_titles, trial_of
from tb_bottleneck.schema import bottleneck_pb2 as pb
from tb_bottleneck.trial.changes import Change, parsed
from tb_bottleneck.trial.source_patch import add_patches, patch_of
from tb_bottleneck.trial.work_tree import with_patch, with_revision

SCRIPT = '''"""A training."""
import torch
from torch.utils.data import DataLoader

loader = DataLoader(samples, 8)
other = DataLoader(samples, batch_size=8, num_workers=0, pin_memory=False)
optimizer = torch.optim.AdamW(
    model.parameters(),
    lr=0.1,
)
'''


def test_several_values_are_several_changes_and_several_words_one() -> None:
    assert [change.name for change in parsed(["workers=0,2", "pin_memory"])] == [
        "workers=0 pin_memory",
        "workers=2 pin_memory",
    ]
    assert parsed(["threads=3"])[0].variables == {"OMP_NUM_THREADS": "3", "MKL_NUM_THREADS": "3"}
    assert parsed(["compile=reduce-overhead"])[0].settings == (("compile", "reduce-overhead"),)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("faster", "no change is named"),
        ("workers", "needs a value"),
        ("workers=x", "whole number"),
        ("bf16=1", "no value"),
    ],
)
def test_what_is_no_change_is_named(text: str, because: str) -> None:
    with pytest.raises(Unusable, match=because):
        parsed([text])


def test_every_suggested_change_exists_and_is_about_a_cause() -> None:
    suggested = [trial for cause in cause_titles() if (trial := trial_of(cause, "")) and not trial.startswith(EDIT)]
    assert len(suggested) > 15
    assert all(parsed(trial.split()) for trial in suggested)
    assert trial_of("loader_in_main_process", "DataLoader(dataset, num_workers=6)") == "workers=6"
    assert trial_of("low_clock", "") == ""


def test_an_edit_is_tried_as_a_branch_and_its_finding_is_named_for_the_ledger() -> None:
    assert sum(trial_of(cause, "").startswith(EDIT) for cause in cause_titles()) > 15
    assert trial_of("host_python", "") == "--rev BRANCH --cause host_python"


@pytest.mark.parametrize(("dtype", "trial"), [("bfloat16", "bf16"), ("float16", "")])
def test_a_fix_in_float16_is_not_measured_in_bfloat16(dtype: str, trial: str) -> None:
    assert trial_of("fp32_without_tf32", f'with torch.autocast("cuda", dtype=torch.{dtype}):') == trial


def test_a_patch_changes_calls_and_adds_lines_after_the_imports() -> None:
    patch = patch_of(parsed(["workers=4", "tf32", "fused", "bf16"])[0], "train.py", SCRIPT)
    added = [line[1:] for line in patch.diff.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert added == [
        'torch.set_float32_matmul_precision("high")',
        "loader = DataLoader(samples, 8, num_workers=4)",
        "other = DataLoader(samples, batch_size=8, num_workers=4, pin_memory=False)",
        "    fused=True,",
    ]
    assert patch.by_hand[0].startswith("with torch.autocast")


def test_a_patched_script_is_still_a_program(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    diff = patch_of(parsed(["workers=4", "fused", "tf32"])[0], "train.py", SCRIPT).diff
    subprocess.run(["git", "apply", "-p0", "-"], cwd=tmp_path, input=diff.encode(), check=True)
    compile(path.read_text(), "train.py", "exec")


def reported(folder: Path, trial: str) -> pb.Report:
    """Returns the report of a run of the script in `folder`, whose finding suggests the change `trial`."""
    facts = os.stat(folder / "train.py")
    place = pb.Place(file="train.py", line=1, file_bytes=facts.st_size, file_time_us=facts.st_mtime_ns // 1000)
    return pb.Report(program_file="train.py", findings=[pb.Finding(where=[place], fix=pb.Fix(trial=trial))])


def patch_in(report: pb.Report, folder: Path | None) -> str:
    add_patches(report, folder)
    return report.findings[0].fix.patch


def test_a_report_has_the_patch_of_its_program(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    patch = patch_in(reported(tmp_path, "workers=4"), tmp_path)
    assert "+loader = DataLoader(samples, 8, num_workers=4, persistent_workers=True)" in patch
    subprocess.run(["git", "apply", "-p0", "-"], cwd=tmp_path, input=patch.encode(), check=True)
    for other in ("--rev BRANCH --cause host_python", "bf16", "nothing"):
        assert not patch_in(reported(tmp_path, other), tmp_path)
    assert not patch_in(reported(tmp_path, "workers=4"), None)


@pytest.mark.parametrize("text", ["DataLoader(", "\0", "# no call\n", "(" * 5_000])
def test_a_program_that_cannot_be_patched_has_no_patch(tmp_path: Path, text: str) -> None:
    (tmp_path / "train.py").write_text(text)
    assert not patch_in(reported(tmp_path, "workers=4"), tmp_path)


def test_a_program_that_changed_has_no_patch(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    report = reported(tmp_path, "workers=4")
    (tmp_path / "train.py").write_text(f"{SCRIPT}#")
    assert not patch_in(report, tmp_path)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repository"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "train.py").write_text("step = 1\n")
    for command in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    (folder / "inner" / "train.py").write_text("step = 2\n")
    monkeypatch.chdir(folder / "inner")
    return folder


def test_a_revision_runs_in_a_copy(repository: Path, tmp_path: Path) -> None:
    where = Path(with_revision("HEAD", tmp_path / "copy"))
    assert (where / "train.py").read_text() == "step = 1\n"
    assert (repository / "inner" / "train.py").read_text() == "step = 2\n"
    trees = subprocess.run(["git", "worktree", "list"], cwd=repository, capture_output=True, check=True).stdout
    assert len(trees.splitlines()) == 1
    with pytest.raises(Unusable):
        with_revision("nothing", tmp_path / "other")


def test_a_patch_is_applied_to_a_copy_with_the_changes_of_the_work_tree(repository: Path, tmp_path: Path) -> None:
    patch = tmp_path / "change.diff"
    patch.write_text("--- a/inner/train.py\n+++ b/inner/train.py\n@@ -1 +1 @@\n-step = 2\n+step = 3\n")
    where = Path(with_patch(patch, tmp_path / "copy"))
    assert (where / "train.py").read_text() == "step = 3\n"
    assert (repository / "inner" / "train.py").read_text() == "step = 2\n"
    patch.write_text(patch.read_text().replace("-step = 2", "-step = 9"))
    with pytest.raises(Unusable, match="does not apply"):
        with_patch(patch, tmp_path / "other")


def test_outside_of_a_repository_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(Unusable, match="git"):
        with_revision("HEAD", tmp_path / "copy")


def test_changes_combine() -> None:
    both = Change((("tf32", ""),)).combined(Change(environment=(("A", "1"),), arguments=("--x", "a b")))
    assert both.name == "tf32 --env A=1 --args '--x '\"'\"'a b'\"'\"''"
