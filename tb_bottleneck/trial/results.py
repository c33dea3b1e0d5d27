"""Stores the results of a trial: the gain in the ledger of the logdir (predicted and measured gains of fixes), the
recordings of the last blocks, and the change as a patch."""

import math
import os
import shutil
import sys
import time
from pathlib import Path

from tb_bottleneck.review.notes import Action
from tb_bottleneck.review.store import NoteWriter
from tb_bottleneck.review.trial_notes import trial_text
from tb_bottleneck.sources.file_system import REVIEW_DIRECTORY
from tb_bottleneck.trial.source_patch import patch_of
from tb_bottleneck.trial.trial import Trial, Variant

KEPT = f"{REVIEW_DIRECTORY}/try"
"""The folder in the logdir for the recordings of the last blocks of trials. Lists of recordings leave it out, because a
trial is no training."""
WRITER = "tb-bottleneck try"


def keep(logdir: Path, trial: Trial, variant: Variant, run: str, cause: str) -> bool:
    """Copies the last blocks of `variant` and of the unchanged program into `logdir`, and writes the gain to the
    ledger, even if there is no difference.

    If `run` is not empty, it is the recording that predicted a gain for the finding `cause`. Then the measured gain is
    stored next to the predicted gain, and the block of the unchanged program is not copied. Returns False if there are
    too few blocks, or if the logdir cannot be written. In the second case, prints the error to stderr.
    """
    gain = trial.gain(variant)
    if gain is None or math.isinf(gain.high):
        return False
    losses = trial.losses(variant)
    change = variant.change.name + ("; the losses differ" if losses is not None and not losses.agrees else "")
    try:
        name = _free(logdir, f"{KEPT}/{time.strftime('%Y%m%d-%H%M%S')}")
        before = run or _copied(trial.before, logdir, f"{name}/before")
        after = _copied(variant, logdir, f"{name}/after")
        writer = NoteWriter(str(logdir), WRITER)
        text = trial_text(gain.gain, gain.low, gain.high, change)
        writer.write(Action.TRIED, before, cause=cause, text=text, fixed_in=after)
        writer.close()
    except OSError as error:
        print(f"tb-bottleneck: the result could not be kept in {logdir}: {error.strerror or error}", file=sys.stderr)
        return False
    return True


def _free(logdir: Path, name: str) -> str:
    """Returns `name`, with a number appended if `logdir` already has a folder with this name."""
    names = (name, *(f"{name}-{number}" for number in range(2, 1000)))
    return next(each for each in names if not (logdir / each).exists())


def _copied(variant: Variant, logdir: Path, name: str) -> str:
    """Copies the monitor's files of the variant's last block to the folder `name` in `logdir`.

    Returns the name of the copied run, which is its path relative to `logdir`.
    """
    source = variant.blocks[-1].run / "tb_bottleneck"
    shutil.copytree(source, logdir / name / "tb_bottleneck")
    (folder,) = (logdir / name / "tb_bottleneck").iterdir()
    return f"{name}/tb_bottleneck/{folder.name}"


def write_patch(trial: Trial, program: tuple[str, ...], path: Path) -> None:
    """Writes the fastest change of `trial` to `path` as a patch of the script, which is the first word of `program`.

    Prints to stderr what the patch does not contain and remains to be done by hand.
    """
    if program[0] == "-m":
        print("tb-bottleneck: --patch-out needs a script, not a module", file=sys.stderr)
        return
    best = max(trial.changed, key=lambda variant: gain.gain if (gain := trial.gain(variant)) is not None else 0.0)
    shown = os.path.relpath(program[0])
    patch = patch_of(
        best.change,
        shown if not shown.startswith("..") else os.path.basename(shown),
        Path(program[0]).read_text(encoding="utf-8"),
    )
    path.write_text(patch.diff, encoding="utf-8")
    print(f"{path}: {best.change.name}. Look at it, and apply it with: patch -p0 < {path}", file=sys.stderr)
    for code in patch.by_hand:
        print(f"  by hand: {code}", file=sys.stderr)
