"""`tb-bottleneck run`: runs an unchanged training script, monitored."""

import argparse
import contextlib
import importlib.util
import os
import runpy
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from tb_bottleneck.commands.subparser import add_subparser
from tb_bottleneck.errors import NotFound

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers

EXAMPLES = """\
examples:
  tb-bottleneck run --logdir runs/mine train.py --epochs 3
  tb-bottleneck run --logdir runs/mine -m my_package.train --epochs 3
  torchrun --nproc-per-node 8 -m tb_bottleneck run --logdir runs/mine train.py

Options for the monitor stand before the script; everything behind it is the script's own. Processes that the script
starts by itself (torch.multiprocessing.spawn) are not monitored: there, put `with Monitor(logdir):` around the loop.

An unchanged script does not say which module is the model, so its forward pass is not timed: traces tell what that
leaves open. `with Monitor(logdir, model=model):` times it in every step.
"""


def add(commands: "Subparsers") -> None:
    """Declares the command."""
    run = add_subparser(
        commands,
        "run",
        "run an unchanged training script, monitored",
        "Runs a training script, as `python script.py ...` would, and writes down how its steps spend "
        "their time: into a run of its own under the log directory, together with a trace of a few steps.",
        EXAMPLES,
        usage="tb-bottleneck run [-h] --logdir DIR [--captures N] (-m MODULE | SCRIPT) [ARGUMENT ...]",
    )
    run.add_argument(
        "--logdir",
        required=True,
        metavar="DIR",
        help="TensorBoard's log directory, a local one; the monitor makes DIR/tb_bottleneck/... in it",
    )
    run.add_argument(
        "--captures",
        type=int,
        default=3,
        metavar="N",
        help="record at most so many traces unasked: one after warm-up, others when the run changes (default: 3; 0 "
        "records none but those that `tb-bottleneck capture` asks for)",
    )
    what = run.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="a module to run, then its arguments"
    )
    what.add_argument("script", nargs="?", help="a script to run, then its arguments")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    run.set_defaults(run=_check, theirs=_run)


def _check(options: argparse.Namespace) -> int:
    """Raises NotFound where there is nothing to run."""
    if importlib.util.find_spec("torch") is None:
        raise NotFound(f"torch is not installed for {sys.executable}, so there is no training to monitor there")
    if options.script is not None and not Path(options.script).exists():
        raise NotFound(f"no such script: {options.script}")
    if options.module is not None:
        _check_module(options.module)
    return 0


def _check_module(words: list[str]) -> None:
    if not words:
        raise NotFound("no module was named after -m")
    package = words[0].partition(".")[0]
    if not PathFinder.find_spec(package, [os.getcwd()]) and not importlib.util.find_spec(package):
        raise NotFound(f"no module named {package!r}; looked in {os.getcwd()} and in the installed packages")


def _run(options: argparse.Namespace) -> int:
    from tb_bottleneck.monitor.monitor import Monitor

    monitor = Monitor(options.logdir, captures=options.captures)
    with monitor:
        try:
            if options.module:
                _run_module(options.module)
            else:
                _run_script(options.script, options.arguments)
        finally:
            _tell(monitor.directory)
    return 0


def _tell(directory: str | None) -> None:
    """What to do next, once for a job of many ranks; the program's own end is not disturbed."""
    if directory is not None and "_rank0_" in os.path.basename(directory):
        with contextlib.suppress(OSError):
            print(f"tb-bottleneck: monitored; what it found: tb-bottleneck diagnose {directory}", file=sys.stderr)


def _run_script(script: str, arguments: list[str]) -> None:
    """As `python script arguments…` does: its folder comes first on the path."""
    sys.argv = [script, *arguments]
    _first_on_the_path(os.path.dirname(os.path.realpath(script)))
    runpy.run_path(script, run_name="__main__")


def _run_module(words: list[str]) -> None:
    """As `python -m module arguments…` does: the working directory comes first on the path."""
    sys.argv = list(words)
    _first_on_the_path(os.getcwd())
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


def _first_on_the_path(folder: str) -> None:
    """In the place of our own folder, which Python put there for us; with `-P` it puts none there."""
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder
