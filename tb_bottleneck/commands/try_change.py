"""`tb-bottleneck try`: measures the effect of a change of a training."""

import argparse
import json
import math
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tb_bottleneck.base.errors import NotFound, Unusable
from tb_bottleneck.commands.arguments import add_subparser
from tb_bottleneck.commands.terminal import stdout_layout

if TYPE_CHECKING:
    from collections.abc import Callable

    from tb_bottleneck.commands import Subparsers
    from tb_bottleneck.trial.changes import Change
    from tb_bottleneck.trial.plan import Expectation, PlanStep
    from tb_bottleneck.trial.saved import SavedBlocks
    from tb_bottleneck.trial.trial import Trial

SLOWER = 1
RECORDED_SECONDS, ENDING_SECONDS = 60, 30
"""Time for recording a program of which there is no recording, and for its end after Ctrl-C."""
EXAMPLES = """\
examples:
  tb-bottleneck try workers=4 -- python train.py --epochs 3
  tb-bottleneck try workers=0,2,4,8 -- python train.py          a curve of several values
  tb-bottleneck try bf16 compile -- python train.py             both together
  tb-bottleneck try --env OMP_NUM_THREADS=4 -- python train.py
  tb-bottleneck try --args "--batch-size 64" -- python train.py the rate of samples is compared
  tb-bottleneck try --rev HEAD~1 --fail-slower 3% -- python train.py    in CI
  tb-bottleneck try -- python train.py                          the fixes that the last report of this program suggests;
                                                                without a recording, the program is recorded first
  tb-bottleneck try --resume workers=4 -- python train.py       go on after Ctrl-C, or with more --minutes

In each round, the unchanged and the changed program start as fresh processes under the monitor, and train in turns of
an eighth of a second: one trains while the other waits, so that a machine that is faster or slower for some seconds
affects both. Rounds go on until the gain is known or --minutes are over. If they cannot run at the same time, they run
one after the other. Nothing of yours is changed: settings are applied inside the process. A program runs for some
seconds per round, as far as it gets; what it writes itself, such as checkpoints, it writes then, too.

exit status: 0; 1 if a gate fails or nothing could be measured; 2 for wrong usage
"""


def add(commands: "Subparsers") -> None:
    """Adds the command with its arguments to `commands`, the subparsers of the command line."""
    trial = add_subparser(
        commands,
        "try",
        "measure a change: the unchanged and the changed training in turns",
        "Runs the unchanged training and the changed one in short turns after warm-up, and says how much faster the "
        "change is, with its interval, and whether the losses agree.",
        EXAMPLES + _kinds_text(),
        usage="tb-bottleneck try [OPTION ...] [CHANGE ...] -- python SCRIPT [ARGUMENT ...]",
    )
    trial.add_argument("changes", nargs="*", metavar="CHANGE", help="changes to apply together; see below")
    trial.add_argument("--env", action="append", default=[], metavar="K=V", help="set an environment variable")
    trial.add_argument("--args", dest="more", default="", metavar="TEXT", help="append arguments to the program")
    trial.add_argument("--patch", type=Path, metavar="FILE", help="apply a patch to a copy of the git work tree")
    trial.add_argument("--rev", metavar="REV", help="run another git revision, in a copy")
    trial.add_argument(
        "--plan", action="store_true", help="try the fixes that this program's last report suggests; the default"
    )
    trial.add_argument("--logdir", default="runs", metavar="DIR", help="where the result is kept (default: runs)")
    trial.add_argument("--minutes", type=float, default=5.0, metavar="N", help="end after so long (default: 5)")
    trial.add_argument(
        "--seconds", type=float, default=2.0, metavar="S", help="measured time of a program in each round (default: 2)"
    )
    trial.add_argument(
        "--one-by-one", action="store_true", help="for programs that cannot run at the same time; takes longer"
    )
    trial.add_argument("--cause", default="", metavar="CAUSE", help="the finding that the change fixes, for the ledger")
    trial.add_argument("--patch-out", type=Path, metavar="FILE", help="write the change as a patch of the script")
    trial.add_argument("--fail-slower", type=_share, metavar="N%", help="exit with 1 if the change is slower by more")
    trial.add_argument("--resume", action="store_true", help="go on with the unfinished trial of the same command")
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
    """Splits `arguments` at the first `--`. Returns the options before it, and the program's command after it."""
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _try(options: argparse.Namespace) -> int:
    from tb_bottleneck.trial.block_result import BlockFailed
    from tb_bottleneck.trial.block_runner import Blocks
    from tb_bottleneck.trial.programs import program_of
    from tb_bottleneck.trial.saved import SavedBlocks

    try:
        python, program = program_of(options.command)
    except ValueError as error:
        raise Unusable(str(error)) from None
    script = Path(program[0]) if program[0] != "-m" else None
    if script is not None and not script.is_file():
        raise NotFound(f"no such script: {script}")
    options.plan |= not (options.changes or options.env or options.more or options.patch or options.rev)
    folder = _folder(options, [python, *program], script)
    keep = True
    try:
        blocks = Blocks(program, python, options.seconds, folder, not options.one_by_one, _say)
        runner = SavedBlocks(blocks, folder)
        if options.resume:
            print(f"Going on after {runner.load()} rounds.", file=sys.stderr)
        status, finished = (_plan if options.plan else _changed)(options, runner, program)
        keep = not finished
        return status
    except BlockFailed as failure:
        print(f"tb-bottleneck: the unchanged program could not be measured: {failure}", file=sys.stderr)
        keep = False
        return 1
    finally:
        if keep and runner.has_blocks:
            print("The rounds are kept: the same command with --resume goes on with them.", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _folder(options: argparse.Namespace, program: list[str], script: Path | None) -> Path:
    """Returns the folder with the saved blocks (measured runs) of the trial. `program` is the command, `script` the
    path of its script, or None for a module. Without --resume, the folder is empty."""
    from tb_bottleneck.trial.saved import describe, folder_of
    from tb_bottleneck.trial.work_tree import revision_id

    if options.patch is not None and not options.patch.is_file():
        raise NotFound(f"no such patch: {options.patch}")
    patch = options.patch.read_text(encoding="utf-8", errors="replace") if options.patch is not None else ""
    what = [*options.changes, *options.env, options.more, patch, revision_id(options.rev) if options.rev else ""]
    folder = folder_of([*program, *what, str(options.plan), str(options.seconds)], script)
    if folder is None:
        if options.resume:
            raise Unusable("--resume needs the cache, and TB_BOTTLENECK_CACHE switches it off")
        return Path(tempfile.mkdtemp(prefix="tb_bottleneck_try_"))
    before = describe(folder)
    if options.resume and not before:
        raise NotFound(
            "there is no unfinished trial of this command: it must have the same changes, program and arguments, and "
            "the script must not have changed since"
        )
    if not options.resume:
        if before:
            print(f"An unfinished trial of this ({before}) is dropped; --resume would go on with it.", file=sys.stderr)
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _changed(options: argparse.Namespace, runner: "SavedBlocks", program: tuple[str, ...]) -> tuple[int, bool]:
    """Tries the changes of the command line on `program` with `runner`. Returns the exit status, and whether the trial
    is finished (more time would not change its result)."""
    from tb_bottleneck.trial.report import json_of, text_of
    from tb_bottleneck.trial.results import keep, write_patch
    from tb_bottleneck.trial.trial import run_trial

    changes = _changes(options, runner.folder)
    deadline = time.monotonic() + 60 * options.minutes
    trial = run_trial(runner, changes, deadline, told=_progress(deadline))
    found = [each for each in _expected(options.logdir, program) if _is_about(each, options.cause, changes)]
    kept = [
        keep(Path(options.logdir), trial, variant, found[0].run if found else "", found[0].cause if found else "")
        for variant in trial.changed
    ]
    if options.json:
        print(json.dumps(json_of(trial), allow_nan=False))
    else:
        for each in found[:1]:
            print(f"{each.title} [{each.cause}]: {each.text}")
        print(stdout_layout().text(text_of(trial)), end="")
    _say_kept(any(kept), options)
    if options.patch_out is not None:
        write_patch(trial, program, options.patch_out)
    return _status(trial, options), trial.is_finished


def _say_kept(kept: bool, options: argparse.Namespace) -> None:
    if kept:
        print(f"In the ledger: tb-bottleneck review {options.logdir}", file=sys.stderr)


def _plan(options: argparse.Namespace, runner: "SavedBlocks", program: tuple[str, ...]) -> tuple[int, bool]:
    """Tries the fixes that the program's newest report suggests. Returns the exit status, and whether all trials are
    finished (more time would not change their results)."""
    from tb_bottleneck.trial.plan import PlanStep, plan_lines, run_plan
    from tb_bottleneck.trial.report import json_of, text_of
    from tb_bottleneck.trial.results import keep

    expected = _expected(options.logdir, program)
    if not expected:
        _record(options, program)
        expected = _expected(options.logdir, program)
    if not expected:
        raise NotFound(
            f"no recording of this program under {options.logdir} has a finding: tb-bottleneck list {options.logdir}"
        )
    for each in expected:
        print(
            f"{each.title}: {each.change.name if each.change else 'no setting fixes it'}, {each.text}", file=sys.stderr
        )
    deadline = time.monotonic() + 60 * options.minutes
    steps: list[PlanStep] = []
    kept = []
    for step in run_plan(runner, expected, deadline, _progress(deadline)):
        steps.append(step)
        if step.trial is None:
            continue
        variant, about = step.trial.changed[0], step.expectation
        kept.append(keep(Path(options.logdir), step.trial, variant, about.run, about.cause))
        if not options.json:
            print(stdout_layout().text(text_of(step.trial)))
    if options.json:
        print(json.dumps({"steps": [_step_json(step, json_of) for step in steps]}, allow_nan=False))
    else:
        print(stdout_layout().text(plan_lines(steps)), end="")
    _say_kept(any(kept), options)
    trials = [step.trial for step in steps if step.trial is not None]
    finished = time.monotonic() < deadline and all(trial.is_finished for trial in trials)
    return 0 if trials else 1, finished


def _record(options: argparse.Namespace, program: tuple[str, ...]) -> None:
    """Records the program under the monitor for at most RECORDED_SECONDS. Its output is not shown."""
    _say(f"No recording of the program was found. It is recorded for at most {RECORDED_SECONDS} s.")
    command = [sys.executable, "-m", "tb_bottleneck", "run", "--logdir", options.logdir, *program]
    environment = {**os.environ, "TB_BOTTLENECK_QUIET": "1"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment) as training:
        try:
            training.wait(RECORDED_SECONDS)
            if training.returncode:
                _say(f"It ended with status {training.returncode}. To see why: {shlex.join(['python', *program])}")
        except subprocess.TimeoutExpired:
            training.send_signal(signal.SIGINT)  # the monitor writes what it has
        finally:
            try:
                training.wait(ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                training.kill()


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
    """Returns True if `expected` has the cause `cause`. If `cause` is empty, returns True if `expected` has the same
    settings as one of `changes`."""
    if cause or expected.change is None:
        return expected.cause == cause
    names = {name for name, _ in expected.change.settings}
    return any(names == {name for name, _ in change.settings} for change in changes)


def _expected(logdir: str, program: tuple[str, ...]) -> "list[Expectation]":
    """Returns the findings of the newest recording of `program` in the logdir."""
    from tb_bottleneck.commands.recordings import recordings_at
    from tb_bottleneck.trial.plan import newest_expectations

    return newest_expectations(recordings_at(logdir) if Path(logdir).is_dir() else [], program)


def _changes(options: argparse.Namespace, folder: Path) -> "list[Change]":
    from tb_bottleneck.trial.changes import Change, parsed
    from tb_bottleneck.trial.work_tree import with_patch, with_revision

    shutil.rmtree(folder / "tree", ignore_errors=True)  # left by the trial that is resumed
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
    return changes


def _progress(deadline: float) -> "Callable[[Trial, str], None]":
    def told(trial: "Trial", text: str) -> None:
        known = [trial.gain(variant) for variant in trial.changed]
        gains = ", ".join(f"{gain.gain:.2f}x" for gain in known if gain is not None)
        left = max(deadline - time.monotonic(), 0)
        print(f"{text}{'; so far ' + gains if gains else ''} (at most {left:.0f} s left)", file=sys.stderr, flush=True)

    return told


def _status(trial: "Trial", options: argparse.Namespace) -> int:
    gains = [trial.gain(variant) for variant in trial.changed]
    if all(gain is None for gain in gains):
        return 1
    if options.fail_slower is not None and any(
        gain is not None and gain.verdict != "unknown" and gain.gain < 1 / (1 + options.fail_slower) for gain in gains
    ):
        return SLOWER
    return 0
