"""`tb-bottleneck watch`: the trainings under a logdir while they run, refreshed in the terminal."""

import argparse
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.commands.arguments import add_subparser
from tb_bottleneck.commands.recordings import hangs_at

if TYPE_CHECKING:
    from tb_bottleneck.commands import Subparsers
    from tb_bottleneck.live.state import LiveJobs, LiveState

STALLED = 3
"""Exit status of --until-hang."""

EXAMPLES = """\
examples:
  tb-bottleneck watch runs/                        one screen, refreshed; q quits
  tb-bottleneck watch runs/ --json | jq .          one object per interval, for scripts
  tb-bottleneck watch runs/ --until-hang || scancel $JOB

Every process writes a heartbeat of a few kilobytes into its run directory every 5 s (with `tb-bottleneck run`, or
`with Monitor(logdir):`). The ranks of a job are joined by it: which rank hangs, at which line, since when, and who
waits for it; which rank is slower than the others, and in which part of the step. Nothing is read but these files.
In a folder without heartbeats, dumps of torch's Flight Recorder say which rank did not call which collective.

exit status: 0; 3 with --until-hang once a job cannot go on; 2 if there is no such folder
"""


def add(commands: "Subparsers") -> None:
    """Adds the command with its arguments to `commands`, the subparsers of the command line."""
    watch = add_subparser(
        commands,
        "watch",
        "watch trainings while they run: slow and hung ranks, step times",
        "Shows the monitored trainings under a logdir while they run: what holds each job up, its step time, the parts "
        "of its step in the last minute, and each rank over time. Where the output is no terminal, prints a line "
        "for each change.",
        EXAMPLES,
    )
    watch.add_argument("logdir", metavar="LOGDIR", help="the logdir of the monitors, or a directory below it")
    watch.add_argument(
        "--every", type=float, default=2.0, metavar="SECONDS", help="time between two looks (default: 2)"
    )
    watch.add_argument("--once", action="store_true", help="look once, print it, and exit")
    watch.add_argument("--json", action="store_true", help="print one JSON object per look: {unix_s, jobs}")
    watch.add_argument(
        "--until-hang",
        action="store_true",
        help=f"exit with status {STALLED} once no step of a job can end any more: a rank hangs, or is gone",
    )
    watch.set_defaults(run=_watch)


def _watch(options: argparse.Namespace) -> int:
    from tb_bottleneck.live.state import LiveJobs

    if not Path(options.logdir).is_dir():
        raise NotFound(f"no such directory: {options.logdir}")
    jobs = LiveJobs(options.logdir)
    every = max(options.every, 0.2)
    if options.json or options.once or not sys.stdout.isatty():
        return _print(jobs, options, every)
    return _show(jobs, options, every)


def _print(jobs: "LiveJobs", options: argparse.Namespace, every: float) -> int:
    from tb_bottleneck.live.screen import ChangedLines, lines

    changed = ChangedLines()
    hangs = [] if jobs.read(over=True) else hangs_at([options.logdir])
    for hang in hangs:  # no heartbeats: the job has ended, or was not monitored
        print(json.dumps(hang.as_json()) if options.json else "\n".join(hang.lines()))
    if hangs:
        return STALLED if options.until_hang else 0
    if not (options.json or options.once or jobs.read()):
        print(f"no training runs under {options.logdir} now; waiting for one (Ctrl-C ends this)", file=sys.stderr)
    while True:
        states = jobs.read(over=options.once)
        if options.json:
            print(json.dumps({"unix_s": round(time.time(), 1), "jobs": [state.as_json() for state in states]}))
        else:
            for line in lines(states) if options.once else changed.of(states):
                print(line)
            if options.once and not states:
                print(f"no monitored training writes heartbeats under {options.logdir}")
        sys.stdout.flush()
        if options.until_hang and _is_stalled(states):
            return STALLED
        if options.once:
            return 0
        time.sleep(every)


def _show(jobs: "LiveJobs", options: argparse.Namespace, every: float) -> int:
    from rich.console import Console
    from rich.live import Live

    from tb_bottleneck.live.screen import lines, screen

    console = Console()
    with _pressed_q() as quits, Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            states = jobs.read()
            live.update(screen(states, options.logdir), refresh=True)
            stalled = options.until_hang and _is_stalled(states)
            if stalled or quits.wait(every):
                break
    for line in lines(states):
        print(line)
    return STALLED if stalled else 0


def _is_stalled(states: "list[LiveState]") -> bool:
    return any(state.verdict.is_stall for state in states)


@contextmanager
def _pressed_q() -> Iterator[threading.Event]:
    """Yields an event that is set when q is pressed; never set without a terminal for input, or on Windows."""
    pressed = threading.Event()
    try:
        import termios
        import tty

        before = termios.tcgetattr(sys.stdin)
        tty.setcbreak(sys.stdin)
    except (ImportError, OSError, ValueError, termios.error):
        yield pressed
        return

    def read() -> None:
        while not pressed.is_set():
            if sys.stdin.read(1) in ("q", "Q", ""):
                pressed.set()

    threading.Thread(target=read, daemon=True).start()
    try:
        yield pressed
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
