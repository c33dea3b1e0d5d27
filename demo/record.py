"""`python -m demo record`: runs each pair on this machine, times it without a profiler, and records traces."""

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
from demo.index import Entry, describe, exists, write_index
from demo.needs import count_gpus, missing_for
from demo.pairs import MONITORED, PAIRS, RECORDED
from demo.scrub import scrub_file, words_of_this_machine
from tb_bottleneck.schema.signals import HEARTBEAT_FILE

STEPS = 24  # per timed training; a multiple of three, so that checkpoints are counted in whole periods
REPEATS = 10
# Duration of the monitored training: long enough for several windows, short enough for a file of tens of kilobytes.
MONITORED_SECONDS = 8.0
PYTHON = sys.executable


class VariantFailed(Exception):
    """A variant produced no recording; str() is a message for the user."""


def main(arguments: Sequence[str]) -> int:
    """Records the requested variants. Returns the exit status: 0, 1 if a variant failed, 2 if nothing can run."""
    options = _parser().parse_args(arguments)
    if importlib.util.find_spec("torch") is None:
        print(
            "demo record: torch is not installed, and it runs real trainings; try: pip install '.[demo]'",
            file=sys.stderr,
        )
        return 2
    variants = [(name, variant) for name in _requested(options) for variant in PAIRS[name].variants]
    due = [entry for entry in variants if options.again or not exists(options.out, *entry)]
    print(f"recording {len(due)} of {len(variants)} variants", file=sys.stderr)
    clock = Deadline(options.minutes)
    failed = 0
    for number, (name, variant) in enumerate(due):
        if clock.is_near():
            print(
                f"time limit reached: {len(due) - number} variants are left; the same command records them",
                file=sys.stderr,
            )
            break
        try:
            record(options.out, name, variant, options.steps, options.repeats, options.monitored)
        except VariantFailed as failure:
            print(f"demo record: {failure}", file=sys.stderr)
            failed = 1
    return failed


def _requested(options: argparse.Namespace) -> list[str]:
    """Returns the requested pairs, or all, without those that this machine cannot run (reported on stderr)."""
    gpus = count_gpus()
    lacking = {name: missing_for(PAIRS[name], gpus) for name in options.names or PAIRS}
    for name, missing in lacking.items():
        if missing:
            print(f"{name}: skipped, it needs {missing}", file=sys.stderr)
    return [name for name, missing in lacking.items() if not missing]


def record(out: Path, name: str, variant: str, steps: int, repeats: int, monitored: float = MONITORED_SECONDS) -> None:
    """Records one variant into `out/<name>/<variant>/` and `out/recorded.json`, replacing an older recording.

    Raises VariantFailed if its training process fails.
    """
    target = out / name / variant
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        *timed, last = run_variant(name, variant, Path(folder), steps, repeats, monitored)
        scrub_file(Path(folder) / last["trace"], target / last["trace"], words_of_this_machine())
        shutil.rmtree(target / MONITORED, ignore_errors=True)
        if (Path(folder) / MONITORED).is_dir():
            # The heartbeat names this machine, and nobody waits for this training.
            shutil.copytree(Path(folder) / MONITORED, target / MONITORED, ignore=shutil.ignore_patterns(HEARTBEAT_FILE))
    write_index(out, name, variant, describe(last, [line["steps_ns"] for line in timed]))
    for older in target.glob("*.pt.trace.json*"):
        if older.name != last["trace"]:
            older.unlink()


def run_variant(name: str, variant: str, folder: Path, steps: int, repeats: int, monitored: float) -> list[Entry]:
    """Runs `demo.variant` in a separate process. Returns one entry per timed training, then one for the trace."""
    command = [PYTHON, "-m", "demo.variant", name, variant, str(folder), str(steps), str(repeats), str(monitored)]
    entries: list[Entry] = []
    # The profiler writes much to stderr, which is shown only if the training fails.
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, cwd=RECORDED.parents[1], stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        for line in process.stdout or ():
            if line.startswith("{"):
                entries.append(json.loads(line))
                print(f"{name}/{variant}: {_progress(entries[-1], len(entries), repeats)}", file=sys.stderr, flush=True)
        status = process.wait()
        errors.seek(0)
        if status != 0 or not entries or "trace" not in entries[-1]:
            raise VariantFailed(
                f"the training of {name}/{variant} ended with status {status} and no trace:\n{errors.read()}"
            )
    return entries


def _progress(entry: Entry, count: int, repeats: int) -> str:
    if "trace" in entry:
        return "monitored"
    return f"training {count}/{repeats} without a profiler: {statistics.fmean(entry['steps_ns']) / 1e6:.1f} ms per step"


def _parser() -> argparse.ArgumentParser:
    pairs = "\n".join(f"  {pair.name:<26}{pair.shows} ({pair.needs})" for pair in PAIRS.values())
    parser = argparse.ArgumentParser(
        prog="python -m demo record",
        description="Run each pair on this machine, slow and fixed: first by itself, for the true times, then under\n"
        "the monitor, which records its telemetry and a trace. Each variant runs in its own process. Existing\n"
        "recordings are kept, so an interrupted call can be resumed. `python -m demo table` then compares the\n"
        "verdicts with the truth.\n\n" + pairs,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="*", type=_pair, metavar="NAME", help="the pairs to record (default: all that can run here)"
    )
    parser.add_argument("--all", action="store_true", help="record all that can run here (the default)")
    parser.add_argument("--minutes", type=float, metavar="N", help="start no variant that would exceed N minutes")
    parser.add_argument("--out", type=Path, default=RECORDED, metavar="DIR", help="output (default: demo/recorded)")
    parser.add_argument("--steps", type=_whole(3), default=STEPS, metavar="N", help=f"timed steps ({STEPS})")
    parser.add_argument("--repeats", type=_whole(1), default=REPEATS, metavar="N", help=f"timed trainings ({REPEATS})")
    parser.add_argument(
        "--monitored",
        type=float,
        default=MONITORED_SECONDS,
        metavar="S",
        help="seconds under the monitor (%(default)s)",
    )
    parser.add_argument("--again", action="store_true", help="replace existing recordings")
    return parser


def _pair(text: str) -> str:
    if text not in PAIRS:
        raise argparse.ArgumentTypeError(f"there is no pair {text!r}; there are {', '.join(PAIRS)}")
    return text


def _whole(least: int) -> Callable[[str], int]:
    def count(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, got {text!r}")
        return int(text)

    return count
