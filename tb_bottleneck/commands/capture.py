"""`tb-bottleneck capture`: asks trainings that run now for a trace of their next steps."""

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tb_bottleneck.commands.subparser import add_subparser
from tb_bottleneck.errors import NotFound

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers

_LOOK_EVERY_S = 0.5

EXAMPLES = """\
examples:
  tb-bottleneck capture runs/              every training that is monitored under runs/
  tb-bottleneck capture runs/mine --wait 120  && tb-bottleneck diagnose runs/mine

A training hears of it within some seconds, and records its next two to six steps, as long as no profiler of its own
is at work. One run records up to 20 traces on request.
"""


def add(commands: "Subparsers") -> None:
    """Declares the command."""
    capture = add_subparser(
        commands,
        "capture",
        "ask monitored trainings that run now for a trace",
        "Asks every monitored training that now writes under a logdir for a trace of its next steps. A "
        "training is monitored by `tb-bottleneck run`, or by `with Monitor(logdir):` in its own code.",
        EXAMPLES,
    )
    capture.add_argument("logdir", metavar="LOGDIR", help="the logdir that the monitors write under, or a part of it")
    capture.add_argument(
        "--wait",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="wait at most so long for the traces, and name them; exit status 1 where one does not come (default: 0)",
    )
    capture.set_defaults(run=_capture)


def _capture(options: argparse.Namespace) -> int:
    from tb_bottleneck.monitor.writer.run_directory import live_directories, request_capture

    logdir = Path(options.logdir)
    if not logdir.is_dir():
        raise NotFound(f"no such directory: {logdir}")
    before = _traces(logdir)
    alive = live_directories(logdir)
    if not alive:
        raise NotFound(
            f"no monitored training writes under {logdir} now; start one with: tb-bottleneck run --logdir {logdir} …"
        )
    refused = 0
    for directory in alive:
        try:
            asked = request_capture(directory)
        except OSError as error:
            refused += 1
            print(f"tb-bottleneck: {directory} cannot be written to: {error.strerror}", file=sys.stderr)
            continue
        print(f"{'asked' if asked else 'asked before'}: {directory}")
    if options.wait > 0 and refused < len(alive):
        return _wait(logdir, before, len(alive) - refused, options.wait)
    return min(refused, 1)


def _wait(logdir: Path, before: set[Path], wanted: int, seconds: float) -> int:
    until = time.monotonic() + seconds
    while len(new := _traces(logdir) - before) < wanted and time.monotonic() < until:
        time.sleep(_LOOK_EVERY_S)
    for path in sorted(new):
        print(path)
    if len(new) < wanted:
        print(f"tb-bottleneck: {wanted - len(new)} of {wanted} traces did not come in time", file=sys.stderr)
        return 1
    return 0


def _traces(logdir: Path) -> set[Path]:
    return set(logdir.rglob("*.pt.trace.json.gz"))
