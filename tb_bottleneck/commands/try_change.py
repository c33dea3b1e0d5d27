"""`tb-bottleneck try`: measures a change of a training instead of believing it."""

import argparse
import json
import math
import os
import shlex
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tb_bottleneck.base.errors import NotFound, Unusable
from tb_bottleneck.commands.arguments import add_subparser

if TYPE_CHECKING:
    from collections.abc import Callable

    from tb_bottleneck.commands import Subparsers
    from tb_bottleneck.trial.blocks import Blocks
    from tb_bottleneck.trial.changes import Change
    from tb_bottleneck.trial.plan import Expectation, PlanStep
    from tb_bottleneck.trial.trial import Trial, Variant

SLOWER = 1
KEPT = "try"
"""The folder in the logdir for the last blocks of trials."""
MAX_READ = 8
WRITER = "tb-bottleneck try"
EXAMPLES = """\
examples:
  tb-bottleneck try workers=4 -- python train.py --epochs 3
  tb-bottleneck try workers=0,2,4,8 -- python train.py          a curve of several values
  tb-bottleneck try bf16 compile -- python train.py             both together
  tb-bottleneck try --env OMP_NUM_THREADS=4 -- python train.py
  tb-bottleneck try --args "--batch-size 64" -- python train.py the rate of samples is compared
  tb-bottleneck try --rev HEAD~1 --fail-slower 3% -- python train.py    in CI
  tb-bottleneck try --plan -- python train.py                   the fixes that the last report in the logdir suggests

The unchanged and the changed program run in turn, each block a fresh process under the monitor, until the gain is known
or --minutes are over. Nothing of yours is changed: settings are applied inside the process. The program runs for some
seconds per block, as far as it gets; what it writes itself, such as checkpoints, it writes then, too.

exit status: 0; 1 if a gate fails or nothing could be measured; 2 for wrong usage
"""


def add(commands: "Subparsers") -> None:
    """Declares the command."""
    trial = add_subparser(
        commands,
        "try",
        "measure a change: the unchanged and the changed training in turn",
        "Runs the unchanged training and the changed one in alternation, in short blocks after warm-up, and says how "
        "much faster the change is, with its interval, and whether the losses agree.",
        EXAMPLES + _kinds_text(),
        usage="tb-bottleneck try [OPTION ...] [CHANGE ...] -- python SCRIPT [ARGUMENT ...]",
    )
    trial.add_argument("changes", nargs="*", metavar="CHANGE", help="changes to apply together; see below")
    trial.add_argument("--env", action="append", default=[], metavar="K=V", help="set an environment variable")
    trial.add_argument("--args", dest="more", default="", metavar="TEXT", help="append arguments to the program")
    trial.add_argument("--patch", type=Path, metavar="FILE", help="apply a patch to a copy of the git work tree")
    trial.add_argument("--rev", metavar="REV", help="run another git revision, in a copy")
    trial.add_argument("--plan", action="store_true", help="try the fixes that the last report in the logdir suggests")
    trial.add_argument("--logdir", default="runs", metavar="DIR", help="where the result is kept (default: runs)")
    trial.add_argument("--minutes", type=float, default=5.0, metavar="N", help="end after so long (default: 5)")
    trial.add_argument("--seconds", type=float, default=4.0, metavar="S", help="length of a block (default: 4)")
    trial.add_argument("--cause", default="", metavar="CAUSE", help="the finding that the change fixes, for the ledger")
    trial.add_argument("--patch-out", type=Path, metavar="FILE", help="write the change as a patch of the script")
    trial.add_argument("--fail-slower", type=_share, metavar="N%", help="exit with 1 if the change is slower by more")
    trial.add_argument("--json", action="store_true", help="print one JSON object")
    trial.set_defaults(run=_try)


def _kinds_text() -> str:
    from tb_bottleneck.trial.changes import KINDS

    rows = [f"  {name + ('=' + kind.values if kind.values else ''):<22}{kind.shows}" for name, kind in KINDS.items()]
    return "\nchanges:\n" + "\n".join(rows) + "\n"


def _share(text: str) -> float:
    number = text.removesuffix("%")
    try:
        value = float(number) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a share such as 3%")
    return value


def command_of(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Splits the arguments of `try` at the first `--`: the options, and the command of the program."""
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _try(options: argparse.Namespace) -> int:
    from tb_bottleneck.trial.blocks import BlockFailed, Blocks, program_of

    try:
        python, program = program_of(options.command)
    except ValueError as error:
        raise Unusable(str(error)) from None
    if program[0] != "-m" and not Path(program[0]).exists():
        raise NotFound(f"no such script: {program[0]}")
    folder = Path(tempfile.mkdtemp(prefix="tb_bottleneck_try_"))
    blocks = Blocks(program, python, options.seconds, folder)
    try:
        return _plan(options, blocks) if options.plan else _changed(options, blocks, folder)
    except BlockFailed as failure:
        print(f"tb-bottleneck: the unchanged program could not be measured: {failure}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _changed(options: argparse.Namespace, blocks: "Blocks", folder: Path) -> int:
    """Tries the changes of the command line."""
    from tb_bottleneck.trial.report import json_of, text_of
    from tb_bottleneck.trial.trial import run_trial

    changes = _changes(options, folder)
    deadline = time.monotonic() + 60 * options.minutes
    trial = run_trial(blocks, changes, deadline, told=_progress(deadline))
    found = [each for each in _expected(options.logdir) if _is_about(each, options.cause, changes)]
    for variant in trial.changed:
        gain = trial.gain(variant)
        if gain is not None and gain.verdict == "faster":
            _keep(options, trial, variant, found[0].run if found else "", found[0].cause if found else "")
    if options.json:
        print(json.dumps(json_of(trial), allow_nan=False))
    else:
        for each in found[:1]:
            print(f"{each.title} [{each.cause}]: {each.text}")
        print(*text_of(trial), sep="\n")
    if options.patch_out is not None:
        _write_patch(trial, blocks.program, options.patch_out)
    return _status(trial, options)


def _plan(options: argparse.Namespace, blocks: "Blocks") -> int:
    """Tries the fixes that the newest report in the logdir suggests."""
    from tb_bottleneck.trial.plan import PlanStep, plan_lines, run_plan
    from tb_bottleneck.trial.report import json_of, text_of

    expected = _expected(options.logdir)
    if not expected:
        raise NotFound(
            f"there is no recording with a finding under {options.logdir}; make one: tb-bottleneck run --logdir "
            f"{options.logdir} {' '.join(blocks.program)}"
        )
    for each in expected:
        print(
            f"{each.title}: {each.change.name if each.change else 'no setting fixes it'}, {each.text}", file=sys.stderr
        )
    deadline = time.monotonic() + 60 * options.minutes
    steps: list[PlanStep] = []
    for step in run_plan(blocks, expected, deadline, _progress(deadline)):
        steps.append(step)
        if step.trial is None:
            continue
        if step.kept:
            _keep(options, step.trial, step.trial.changed[0], step.expectation.run, step.expectation.cause)
        if not options.json:
            print(*text_of(step.trial), "", sep="\n")
    if options.json:
        print(json.dumps({"steps": [_step_json(step, json_of) for step in steps]}, allow_nan=False))
    else:
        print(*plan_lines(steps), sep="\n")
    return 0 if any(step.trial is not None for step in steps) else 1


def _step_json(step: "PlanStep", json_of: "Callable[[Trial], dict[str, object]]") -> dict[str, object]:
    expected = step.expectation
    gain = expected.speedup
    known = gain.basis not in ("", "none")
    return {
        "cause": expected.cause,
        "change": expected.change.name if expected.change else None,
        "expected": {"speedup": gain.expected, "low": gain.low, "high": gain.high} if known else None,
        "kept": step.kept,
        "trial": None if step.trial is None else json_of(step.trial),
    }


def _is_about(expected: "Expectation", cause: str, changes: "list[Change]") -> bool:
    """Returns True if one of the changes is that of the finding, with any value, or the finding is the stated one."""
    if cause or expected.change is None:
        return expected.cause == cause
    names = {name for name, _ in expected.change.settings}
    return any(names == {name for name, _ in change.settings} for change in changes)


def _expected(logdir: str) -> "list[Expectation]":
    """Returns the findings of the newest recording in the logdir, without those that trials left there."""
    from tb_bottleneck.commands.diagnose import recordings_at
    from tb_bottleneck.diagnosis.recording import diagnose_recording
    from tb_bottleneck.trial.plan import expectations

    recordings = recordings_at(logdir) if Path(logdir).is_dir() else []
    own = [each for each in recordings if not each[1].startswith(f"{KEPT}/")]
    for path, run in sorted(own, key=lambda each: -os.stat(each[0]).st_mtime_ns)[:MAX_READ]:
        found = expectations(diagnose_recording(path), run)
        if found:
            return found
    return []


def _changes(options: argparse.Namespace, folder: Path) -> "list[Change]":
    from tb_bottleneck.trial.changes import Change, parsed
    from tb_bottleneck.trial.work_tree import with_patch, with_revision

    pairs = [text.partition("=") for text in options.env]
    if any(not name or not equals for name, equals, _ in pairs):
        raise Unusable("--env expects NAME=VALUE")
    common = Change(
        environment=tuple((name, value) for name, _, value in pairs), arguments=tuple(shlex.split(options.more))
    )
    if options.patch is not None:
        label = f"--patch {options.patch}"
        common = common.combined(Change(folder=with_patch(options.patch.absolute(), folder / "tree"), label=label))
    if options.rev is not None:
        common = common.combined(
            Change(folder=with_revision(options.rev, folder / "tree"), label=f"--rev {options.rev}")
        )
    changes = [change.combined(common) for change in parsed(options.changes)]
    if changes == [Change()]:
        raise Unusable(
            "there is no change to try: name one, or give --env, --args, --patch, --rev or --plan; see --help"
        )
    return changes


def _progress(deadline: float) -> "Callable[[Trial, str], None]":
    def told(trial: "Trial", text: str) -> None:
        known = [trial.gain(variant) for variant in trial.changed]
        gains = ", ".join(f"{gain.gain:.2f}x" for gain in known if gain is not None)
        left = max(deadline - time.monotonic(), 0)
        print(f"{text}{'; so far ' + gains if gains else ''} (at most {left:.0f} s left)", file=sys.stderr, flush=True)

    return told


def _keep(options: argparse.Namespace, trial: "Trial", variant: "Variant", run: str, cause: str) -> None:
    """Copies the last block of both variants into the logdir, and writes the gain to the ledger.

    It stands beside the gain that the recording `run` predicted for this cause; without one, alone.
    """
    from tb_bottleneck.review.ledger import measured_text
    from tb_bottleneck.review.notes import Action
    from tb_bottleneck.review.store import NoteWriter

    gain = trial.gain(variant)
    if gain is None:
        return
    logdir, name = Path(options.logdir), f"{KEPT}/{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        before = run or _copied(trial.before, logdir, f"{name}/before")
        after = _copied(variant, logdir, f"{name}/after")
        writer = NoteWriter(str(logdir), WRITER)
        text = measured_text(gain.gain, gain.low, gain.high, variant.change.name)
        writer.write(Action.FIXED, before, cause=cause, text=text, fixed_in=after)
        writer.close()
        print(f"In the ledger: tb-bottleneck review {logdir}", file=sys.stderr)
    except OSError as error:
        print(f"tb-bottleneck: the result could not be kept in {logdir}: {error.strerror}", file=sys.stderr)


def _copied(variant: "Variant", logdir: Path, name: str) -> str:
    """Copies the monitor's files of the last block. Returns the run in the logdir."""
    source = variant.blocks[-1].run / "tb_bottleneck"
    shutil.copytree(source, logdir / name / "tb_bottleneck")
    (folder,) = (logdir / name / "tb_bottleneck").iterdir()
    return f"{name}/tb_bottleneck/{folder.name}"


def _write_patch(trial: "Trial", program: tuple[str, ...], path: Path) -> None:
    from tb_bottleneck.trial.source_patch import patch_of

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
    print(f"{path}: {best.change.name}. Look at it, and apply it with: git apply {path}")
    for code in patch.by_hand:
        print(f"  by hand: {code}")


def _status(trial: "Trial", options: argparse.Namespace) -> int:
    gains = [trial.gain(variant) for variant in trial.changed]
    if all(gain is None for gain in gains):
        return 1
    if options.fail_slower is not None and any(
        gain is not None and gain.verdict != "unknown" and gain.gain < 1 / (1 + options.fail_slower) for gain in gains
    ):
        return SLOWER
    return 0
