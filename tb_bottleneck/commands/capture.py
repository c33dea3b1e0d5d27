"""`tb-bottleneck capture`: requests a trace of the next steps from active training runs."""

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.base.units import one_line
from tb_bottleneck.commands.arguments import add_subparser

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers

_POLL_SECONDS = 0.5

EXAMPLES = """\
examples:
  tb-bottleneck capture runs/              all monitored training runs that write under runs/
  tb-bottleneck capture runs/mine --wait 120  && tb-bottleneck diagnose runs/mine
  tb-bottleneck capture runs/mine --job    the same steps of the slow rank, of one that waits for it, and of a usual one
  tb-bottleneck capture runs/mine --machine   all ranks measure their machines first: is it the code or the machine?

A run sees the request within a few seconds and records its next two to nine steps, unless a profiler of its own
is active. One run records at most 20 traces on request.
"""


def add(commands: "Subparsers") -> None:
    """Adds the command with its arguments to `commands`, the subparsers of the command line."""
    capture = add_subparser(
        commands,
        "capture",
        "request a trace from active, monitored training runs",
        "Requests a trace of the next steps from every monitored training run that currently writes under a logdir. A "
        "run is monitored by `tb-bottleneck run`, or by `with Monitor(logdir):` in its own code.",
        EXAMPLES,
    )
    capture.add_argument("logdir", metavar="LOGDIR", help="the logdir of the monitors, or a directory below it")
    capture.add_argument(
        "--job",
        action="store_true",
        help="of each job, record the same steps on three ranks only: the one that holds the others up, the one that "
        "waits longest for it, and a usual one",
    )
    capture.add_argument(
        "--machine",
        action="store_true",
        help="of each job, let all ranks measure their devices, cores, memory and links for 3 s, in which the training "
        "stops, and record the next steps; the report of the job then tells a slow machine from slow code",
    )
    capture.add_argument(
        "--wait",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="wait up to this long for the traces and print their paths; exit with status 1 if one is missing then "
        "(default: 0)",
    )
    capture.set_defaults(run=_capture)


def _capture(options: argparse.Namespace) -> int:
    from tb_bottleneck.monitor.writer.run_directory import live_directories, request_capture

    logdir = Path(options.logdir)
    if not logdir.is_dir():
        raise NotFound(f"no such directory: {logdir}")
    before = _traces(logdir)
    of_jobs = options.job or options.machine
    alive = _of_jobs(logdir, options.machine) if of_jobs else dict.fromkeys(live_directories(logdir))
    if not alive:
        raise NotFound(
            f"no monitored training run writes under {logdir} now; start one: tb-bottleneck run --logdir {logdir} …"
        )
    refused = 0
    for directory, at_step in alive.items():
        try:
            if options.machine and at_step is not None:
                request_capture(directory, at_step, "machine")
                at_step += 1
            is_new = request_capture(directory, at_step)
        except OSError as error:
            refused += 1
            print(f"tb-bottleneck: cannot write to {one_line(directory)}: {error.strerror}", file=sys.stderr)
            continue
        when = "" if at_step is None else f", from step {at_step} on"
        print(f"{'requested' if is_new else 'already requested'}{when}: {one_line(directory)}")
    if options.wait > 0 and refused < len(alive):
        return _wait(logdir, before, len(alive) - refused, options.wait)
    return min(refused, 1)


REQUEST_SECONDS = 15.0
"""Smallest time between the request and the first recorded step. A monitor sees a request within about 5 s, so all
ranks see it before this step."""
STEPS_AHEAD = 20


def _of_jobs(logdir: Path, all_ranks: bool) -> dict[Path, int | None]:
    """Returns a dict: run directory of a rank to record -> number of the first step to record, or None for the next
    step. `all_ranks` includes each rank that trains, otherwise at most three of a job."""
    from tb_bottleneck.live.state import LiveJobs
    from tb_bottleneck.live.verdict import ranks_to_record, training_ranks

    found: dict[Path, int | None] = {}
    for state in LiveJobs(str(logdir)).read():
        ranks = training_ranks(state.job) if all_ranks else ranks_to_record(state.job, state.verdict)
        walls = [rank.beat.recent["wall"] / 1e9 for rank in ranks if rank.beat.recent.get("wall")]
        if walls:
            ahead = max(STEPS_AHEAD, round(REQUEST_SECONDS / min(walls)))
            at_step = max(rank.beat.step for rank in ranks) + ahead
            found |= {logdir / rank.directory: at_step for rank in ranks}
    return found


def _wait(logdir: Path, before: set[Path], wanted: int, seconds: float) -> int:
    until = time.monotonic() + seconds
    while len(new := _traces(logdir) - before) < wanted and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
    for path in sorted(new):
        print(one_line(path))
    if len(new) < wanted:
        print(f"tb-bottleneck: {wanted - len(new)} of {wanted} traces were not recorded in time", file=sys.stderr)
        return 1
    return 0


def _traces(logdir: Path) -> set[Path]:
    return set(logdir.rglob("*.pt.trace.json.gz"))
