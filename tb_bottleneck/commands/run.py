"""`tb-bottleneck run`: runs an unchanged training script with the monitor."""

import argparse
import importlib.util
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.commands.arguments import add_subparser

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers

EXAMPLES = """\
examples:
  tb-bottleneck run train.py --epochs 3
  tb-bottleneck run --logdir runs/mine -m my_package.train --epochs 3
  tb-bottleneck run --logdir runs/mine python train.py --epochs 3
  torchrun --nproc-per-node 8 -m tb_bottleneck run --logdir runs/mine train.py

Options of the monitor come before the script; all further arguments belong to the script. Processes that the script
starts itself (torch.multiprocessing.spawn) are not monitored: put `with Monitor(logdir):` around their training loop,
after init_process_group.

The forward pass is timed if the monitor finds the modules that own the optimizer's parameters after the first step;
otherwise only traces show it. In a program of your own, `with Monitor(logdir, model=model):` names the model.
"""


def add(commands: "Subparsers") -> None:
    """Adds the command with its arguments to `commands`, the subparsers of the command line."""
    run = add_subparser(
        commands,
        "run",
        "run an unchanged training script with the monitor",
        "Runs a training script like `python script.py ...`, and records how its steps spend their time, in a run "
        "of its own under the log directory, together with traces of a few steps.",
        EXAMPLES,
        usage="tb-bottleneck run [-h] [--logdir DIR] [--captures N] [--modules N] (-m MODULE | SCRIPT) [ARGUMENT ...]",
    )
    run.add_argument(
        "--logdir",
        default="runs",
        metavar="DIR",
        help="TensorBoard's log directory, on a local file system; the monitor writes to DIR/tb_bottleneck/... "
        "(default: runs)",
    )
    run.add_argument(
        "--captures",
        type=int,
        default=3,
        metavar="N",
        help="maximum number of automatic traces: one after warm-up, others when the run changes (default: 3; 0: only "
        "traces that `tb-bottleneck capture` requests)",
    )
    run.add_argument(
        "--modules",
        type=int,
        metavar="N",
        help="mark the calls of modules in traces, down to this depth: 1 marks the children of the model; costs about "
        "35 us per call, in recorded steps only",
    )
    run.add_argument(
        "--nccl-log",
        action="store_true",
        help="let NCCL write its log into --logdir, which tells the network that it uses",
    )
    program = run.add_mutually_exclusive_group(required=True)
    program.add_argument(
        "-m", dest="module", nargs=argparse.REMAINDER, metavar="MODULE", help="a module to run, then its arguments"
    )
    program.add_argument("script", nargs="?", help="a script to run, then its arguments")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    run.set_defaults(run=_check, run_program=_run)


def _check(options: argparse.Namespace) -> int:
    """Raises NotFound if torch or the program to run is missing; otherwise returns 0. If the command begins with
    `python` or the path of this interpreter, changes `options` so that they name the program after it."""
    script = options.script or ""
    this = Path(script).exists() and os.path.realpath(script) == os.path.realpath(sys.executable)
    if os.path.basename(script).startswith("python") and (this or not Path(script).exists()):
        from tb_bottleneck.trial.programs import program_of

        try:
            _, program = program_of([os.path.basename(options.script), *options.arguments])
        except ValueError as error:
            raise NotFound(str(error)) from None
        options.script, options.module = (None, list(program[1:])) if program[0] == "-m" else (program[0], None)
        options.arguments = list(program[1:])
    if importlib.util.find_spec("torch") is None:
        raise NotFound(f"torch is not installed for {sys.executable}, so there is no training to monitor")
    if options.script is not None and not Path(options.script).exists():
        raise NotFound(f"no such script: {options.script}")
    if options.module is not None:
        _check_module(options.module)
    return 0


def _check_module(arguments: list[str]) -> None:
    if not arguments:
        raise NotFound("-m needs the name of a module")
    package = arguments[0].partition(".")[0]
    if not PathFinder.find_spec(package, [os.getcwd()]) and not importlib.util.find_spec(package):
        raise NotFound(f"no module named {package!r}; looked in {os.getcwd()} and in the installed packages")


def _run(options: argparse.Namespace) -> int:
    from tb_bottleneck.monitor.monitor import Monitor
    from tb_bottleneck.trial.programs import run_module, run_script

    # Otherwise the profiler prints two lines each time it starts or stops (libkineto, Logger.h).
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    if options.nccl_log:
        os.makedirs(options.logdir, exist_ok=True)
        os.environ.setdefault("NCCL_DEBUG", "INFO")
        os.environ.setdefault("NCCL_DEBUG_FILE", os.path.join(os.path.abspath(options.logdir), "nccl.%h.%p.log"))
    monitor = Monitor(options.logdir, captures=options.captures, module_depth=options.modules)
    with monitor:
        if options.module:
            run_module(options.module)
        else:
            run_script(options.script, options.arguments)
    return 0
