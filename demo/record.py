"""`python -m demo record`: runs each pair on this machine, times it without a profiler, and records its traces."""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from demo.pairs import HALVES, PAIRS, RECORDED
from demo.scrub import scrub_file, words_of_this_machine

SCHEMA = 1
INDEX = "recorded.json"
STEPS = 24  # of each timed training; an even number, so that checkpoints are counted in whole periods
REPEATS = 10

_FACTS = ("torch", "torch_threads", "cores", "machine_cores", "device_kind", "device_name")

Half = dict[str, Any]


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
    for name in options.names or PAIRS:
        for half in HALVES:
            if not options.again and exists(options.out, name, half):
                print(f"{name}/{half}: recorded already (--again records it anew)", file=sys.stderr)
                continue
            try:
                record(options.out, name, half, options.steps, options.repeats)
            except HalfFailed as failure:
                print(f"demo record: {failure}", file=sys.stderr)
                return 1
    return 0


def record(out: Path, name: str, half: str, steps: int, repeats: int) -> None:
    """Record one half into `out/<name>/<half>/` and `out/recorded.json`, in place of an older recording of it.

    Raises HalfFailed where its training process fails.
    """
    target = out / name / half
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        *timed, last = run_half(name, half, Path(folder), steps, repeats)
        scrub_file(Path(folder) / last["trace"], target / last["trace"], words_of_this_machine())
    write_index(out, name, half, describe(last, [line["steps_ns"] for line in timed]))
    for older in target.glob("*.pt.trace.json*"):
        if older.name != last["trace"]:
            older.unlink()


def run_half(name: str, half: str, folder: Path, steps: int, repeats: int) -> list[Half]:
    """What `demo.half` told in a process of its own: one entry per timed training, then one for the trace."""
    command = [sys.executable, "-m", "demo.half", name, half, str(folder), str(steps), str(repeats)]
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


def describe(last: Half, timed: list[list[int]]) -> Half:
    """The entry of a half in recorded.json. Times are in ns and taken without a profiler.

    Told of is the fastest training, because other programs on the machine only ever slow one down. `ns_per_step` is its
    mean step, which counts what strikes some steps only; `step_ns_median` is its median step.
    """
    means = [statistics.fmean(steps) for steps in timed]
    fastest = min(timed, key=statistics.fmean)
    return {
        "trace": last["trace"],
        "recorded": datetime.now(timezone.utc).date().isoformat(),
        **{fact: last["context"][fact] for fact in _FACTS if fact in last["context"]},
        "unprofiled": {
            "steps": len(fastest),
            "ns_per_step": round(statistics.fmean(fastest)),
            "step_ns_median": round(statistics.median(fastest)),
            "ns_per_step_of_each_training": [round(mean) for mean in means],
        },
    }


def write_index(out: Path, name: str, half: str, entry: Half) -> None:
    """Put the entry into recorded.json, and how many times slower the slow half is where both are there."""
    index = read_index(out)
    pair = index["pairs"].setdefault(name, {})
    pair[half] = entry
    if HALVES.keys() <= pair.keys():
        slow, fixed = (pair[each]["unprofiled"]["ns_per_step"] for each in ("slow", "fixed"))
        pair["slow_over_fixed"] = round(slow / fixed, 3)
    growing = out / f"{INDEX}.tmp"
    growing.write_text(json.dumps(index, indent=2, sort_keys=True) + "\n")
    os.replace(growing, out / INDEX)


def read_index(out: Path) -> dict[str, Any]:
    """What recorded.json says, or an empty one where there is none yet."""
    try:
        index: dict[str, Any] = json.loads((out / INDEX).read_text())
    except FileNotFoundError:
        return {"schema": SCHEMA, "command": "python -m demo record", "pairs": {}}
    return index


def exists(out: Path, name: str, half: str) -> bool:
    """Whether this half is recorded: the index tells of a trace, and the trace is there."""
    entry = read_index(out)["pairs"].get(name, {}).get(half)
    return entry is not None and (out / name / half / entry["trace"]).is_file()


def _progress(told: Half, count: int, repeats: int) -> str:
    if "trace" in told:
        return "profiled"
    return f"training {count}/{repeats} without a profiler: {statistics.fmean(told['steps_ns']) / 1e6:.1f} ms per step"


def _parser() -> argparse.ArgumentParser:
    pairs = "\n".join(f"  {pair.name:<24}{pair.shows}" for pair in PAIRS.values())
    parser = argparse.ArgumentParser(
        prog="python -m demo record",
        description="Run each pair on this machine, ill and cured: first without a profiler, for the true times, then\n"
        "with it, for the traces. Each half gets a process of its own; what is recorded already is kept.\n\n" + pairs,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", type=_pair, metavar="NAME", help="the pairs to record (default: all)")
    parser.add_argument("--out", type=Path, default=RECORDED, metavar="DIR", help="where to (default: demo/recorded)")
    parser.add_argument("--steps", type=_whole(3), default=STEPS, metavar="N", help=f"timed steps ({STEPS})")
    parser.add_argument("--repeats", type=_whole(1), default=REPEATS, metavar="N", help=f"timed trainings ({REPEATS})")
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
