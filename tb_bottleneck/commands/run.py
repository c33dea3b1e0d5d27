"""`tb-bottleneck run`: runs an unchanged training script, monitored."""

import argparse
import importlib.util
import os
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

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
    run = commands.add_parser(
        "run",
        help="run an unchanged training script, monitored",
        description="Runs a training script and writes down how its steps spend their time.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("--logdir", required=True, help="TensorBoard's log directory; the monitor makes its own run in it")
    run.add_argument(
        "--captures", type=int, default=3, metavar="N", help="traces to record by itself, at most (3; 0 for none)"
    )
    what = run.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="a module to run, then its arguments"
    )
    what.add_argument("script", nargs="?", help="a script to run, then its arguments")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    run.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from tb_bottleneck.monitor.monitor import Monitor

    if importlib.util.find_spec("torch") is None:
        raise NotFound(f"torch is not installed for {sys.executable}, so there is no training to monitor there")
    if options.script is not None and not Path(options.script).exists():
        raise NotFound(f"no such script: {options.script}")
    if options.module == []:
        raise NotFound("no module was named after -m")
    with Monitor(options.logdir, captures=options.captures):
        if options.module:
            _run_module(options.module)
        else:
            _run_script(options.script, options.arguments)
    return 0


def _run_script(script: str, arguments: list[str]) -> None:
    """As `python script arguments…` does: its folder comes first on the path."""
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.realpath(script))
    runpy.run_path(script, run_name="__main__")


def _run_module(words: list[str]) -> None:
    """As `python -m module arguments…` does: the working directory comes first on the path."""
    sys.argv = list(words)
    sys.path[0] = os.getcwd()
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)
