"""`python -m demo record`: runs each pair on this machine, times it without a profiler, and records its traces."""

import argparse
import importlib.util
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from demo.deadline import Deadline
from demo.index import Half, describe, exists, write_index
from demo.needs import count_gpus, missing_for
from demo.pairs import PAIRS, RECORDED
from demo.scrub import scrub_file, words_of_this_machine

STEPS = 24  # of each timed training; an even number, so that checkpoints are counted in whole periods
REPEATS = 10
# What the monitor watches: long enough for several of its windows, short enough for a file of some tens of kilobytes.
MONITORED_SECONDS = 8.0
PYTHON = sys.executable
MONITORED = "tb_bottleneck"  # the folder that the monitor makes in a run's


class HalfFailed(Exception):
    """A half that gave no recording; str() is for the user."""


def main(arguments: Sequence[str]) -> int:
    """Record what the arguments ask for. Returns the exit status: 0, 1 where a half failed, 2 where nothing can run."""
    options = _parser().parse_args(arguments)
    if importlib.util.find_spec("torch") is None:
        print(
            "demo record: torch is not installed, and it runs real trainings; try: pip install '.[demo]'",
            file=sys.stderr,
        )
        return 2
    wanted = _wanted(options)
    halves = [(name, half) for name in wanted for half in PAIRS[name].halves]
    due = [one for one in halves if options.again or not exists(options.out, *one)]
    print(f"{len(due)} of {len(halves)} halves are to be recorded", file=sys.stderr)
    clock = Deadline(options.minutes)
    failed = 0
    for number, (name, half) in enumerate(due):
        if clock.is_near():
            print(
                f"time is up: {len(due) - number} halves are left; the same command goes on with them", file=sys.stderr
            )
            break
        try:
            record(options.out, name, half, options.steps, options.repeats, options.monitored)
        except HalfFailed as failure:
            print(f"demo record: {failure}", file=sys.stderr)
            failed = 1
    return failed


def _wanted(options: argparse.Namespace) -> list[str]:
    """The pairs that were asked for, or all; those that this machine cannot run are told of and left out."""
    gpus = count_gpus()
    lacking = {name: missing_for(PAIRS[name], gpus) for name in options.names or PAIRS}
    for name, missing in lacking.items():
        if missing:
            print(f"{name}: left out, it takes {missing}", file=sys.stderr)
    return [name for name, missing in lacking.items() if not missing]


def record(out: Path, name: str, half: str, steps: int, repeats: int, monitored: float = MONITORED_SECONDS) -> None:
    """Record one half into `out/<name>/<half>/` and `out/recorded.json`, in place of an older recording of it.

    Raises HalfFailed where its training process fails.
    """
    target = out / name / half
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        *timed, last = run_half(name, half, Path(folder), steps, repeats, monitored)
        scrub_file(Path(folder) / last["trace"], target / last["trace"], words_of_this_machine())
        shutil.rmtree(target / MONITORED, ignore_errors=True)
        if (Path(folder) / MONITORED).is_dir():
            shutil.copytree(Path(folder) / MONITORED, target / MONITORED)
    write_index(out, name, half, describe(last, [line["steps_ns"] for line in timed]))
    for older in target.glob("*.pt.trace.json*"):
        if older.name != last["trace"]:
            older.unlink()


def run_half(name: str, half: str, folder: Path, steps: int, repeats: int, monitored: float) -> list[Half]:
    """What `demo.half` told in a process of its own: one entry per timed training, then one for the trace."""
    command = [PYTHON, "-m", "demo.half", name, half, str(folder), str(steps), str(repeats), str(monitored)]
    told: list[Half] = []
    # The profiler chats on stderr; it is kept aside and shown only where the training fails.
    with (
        tempfile.TemporaryFile("w+") as chat,
        subprocess.Popen(command, cwd=RECORDED.parents[1], stdout=subprocess.PIPE, stderr=chat, text=True) as process,
    ):
        for line in process.stdout or ():
            if line.startswith("{"):
                told.append(json.loads(line))
                print(f"{name}/{half}: {_progress(told[-1], len(told), repeats)}", file=sys.stderr, flush=True)
        status = process.wait()
        chat.seek(0)
        if status != 0 or not told or "trace" not in told[-1]:
            raise HalfFailed(f"the training of {name}/{half} ended with status {status} and no trace:\n{chat.read()}")
    return told


def _progress(told: Half, count: int, repeats: int) -> str:
    if "trace" in told:
        return "profiled"
    return f"training {count}/{repeats} without a profiler: {statistics.fmean(told['steps_ns']) / 1e6:.1f} ms per step"


def _parser() -> argparse.ArgumentParser:
    pairs = "\n".join(f"  {pair.name:<24}{pair.shows} ({pair.needs})" for pair in PAIRS.values())
    parser = argparse.ArgumentParser(
        prog="python -m demo record",
        description="Run each pair on this machine, ill and cured: first without a profiler, for the true times, then\n"
        "with it, for the traces. Each half gets a process of its own; what is recorded already is kept, so a call\n"
        "that was cut off goes on where it was. `python -m demo table` then holds the verdicts against the truth.\n\n"
        + pairs,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="*", type=_pair, metavar="NAME", help="the pairs to record (default: all that can run here)"
    )
    parser.add_argument("--all", action="store_true", help="all that can run here, which is the default")
    parser.add_argument("--minutes", type=float, metavar="N", help="begin no half that would not end within N minutes")
    parser.add_argument("--out", type=Path, default=RECORDED, metavar="DIR", help="where to (default: demo/recorded)")
    parser.add_argument("--steps", type=_whole(3), default=STEPS, metavar="N", help=f"timed steps ({STEPS})")
    parser.add_argument("--repeats", type=_whole(1), default=REPEATS, metavar="N", help=f"timed trainings ({REPEATS})")
    parser.add_argument(
        "--monitored",
        type=float,
        default=MONITORED_SECONDS,
        metavar="S",
        help="seconds under the monitor (%(default)s)",
    )
    parser.add_argument("--again", action="store_true", help="record what is recorded already anew")
    return parser


def _pair(text: str) -> str:
    if text not in PAIRS:
        raise argparse.ArgumentTypeError(f"there is no pair {text!r}; there are {', '.join(PAIRS)}")
    return text


def _whole(least: int) -> Callable[[str], int]:
    def count(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"wanted a whole number from {least} on, got {text!r}")
        return int(text)

    return count
