"""Measures `tb-bottleneck try`: `python tests/trials.py [--repeats N] [--equal N] [--write]`.

The slow halves of the demo's trainings are tried with what fixes them, several times each, on this machine. The truth
is the mean of all trials of a training; counted is how often the interval of a trial contains it. Then equal programs
are tried against each other. The page goes to stdout, and with --write to tests/TRIALS.md.
"""

import argparse
import contextlib
import io
import json
import math
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from helpers.pages import progress, publish  # noqa: E402

from tb_bottleneck.__main__ import main as command  # noqa: E402

PROGRAM = HERE / "trial" / "demo_program.py"
FIXED = "--args fixed"
"""The fixed half of the pair, where the fix is no setting."""
FIXES = (
    ("loader_in_main_process", "workers=2"),
    ("slow_storage", FIXED),
    ("checkpointing", FIXED),
    ("tensorboard_logging", FIXED),
    ("garbage_collection", "gc_freeze"),
    ("oversubscribed_threads", "threads=2"),
    ("oversubscribed_threads", FIXED),
    ("for_loop_optimizer", "fused"),
    ("gradient_accumulation", FIXED),
    ("small_batch", FIXED),
    ("unfused_pointwise", "compile"),
    ("growing_memory", FIXED),
    ("retained_graph", FIXED),
    ("activation_checkpointing", FIXED),
    ("activation_heavy", FIXED),
    ("healthy_transformer", "set_to_none"),
)
EQUAL = "--env UNUSED=1"
SECONDS, MINUTES = 2.0, 2.0


@dataclass(frozen=True)
class Tried:
    """What a trial said of the changed variant, and the seconds that it took."""

    found: dict[str, Any]
    seconds: float

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of the gain, if it is known."""
        low, high = self.found.get("low"), self.found.get("high")
        return None if low is None or high is None else (low, high)


def tried(name: str, change: str, folder: Path) -> Tried:
    """Tries a change of a training of the demo."""
    words = ["try", *shlex.split(change), "--json", "--logdir", str(folder)]
    words += ["--minutes", str(MINUTES), "--seconds", str(SECONDS), "--"]
    began, text = time.monotonic(), io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
        command([*words, "python", str(PROGRAM), name])
    (changed,) = json.loads(text.getvalue().splitlines()[0])["changed"]
    return Tried(changed, time.monotonic() - began)


def row(name: str, change: str, trials: Sequence[Tried]) -> str:
    """Returns the line of a training."""
    known = [trial for trial in trials if trial.interval is not None]
    if not known:
        return f"| {name} | {change} | | 0 of {len(trials)} | {trials[0].found['failure']} | | |"
    truth = math.exp(fmean(math.log(trial.found["gain"]) for trial in known))
    inside = sum(low <= truth <= high for low, high in (trial.interval for trial in known if trial.interval))
    widths = [high / low for low, high in (trial.interval for trial in known if trial.interval)]
    verdicts = [trial.found["verdict"] for trial in known]
    said = ", ".join(f"{verdicts.count(each)} {each}" for each in sorted(set(verdicts)))
    agree = {trial.found.get("losses", {}).get("agree") for trial in known}
    losses = {True: "agree", False: "differ", None: "unknown"}[agree.pop()] if len(agree) == 1 else "not always"
    return (
        f"| {name} | {change} | {truth:.2f} | {inside} of {len(trials)} | {median(widths):.2f} | {said} | {losses} | "
        f"{median(trial.seconds for trial in known):.0f} s |"
    )


def page(repeats: int, equal: int, folder: Path) -> Iterator[str]:
    """Yields the page, line by line."""
    yield "# Trials of changes"
    yield ""
    yield f"Written by `python tests/trials.py --repeats {repeats} --equal {equal} --write`. {os.cpu_count()} cores,"
    yield f"blocks of {SECONDS:.0f} s, at most {MINUTES:.0f} minutes for each trial. The gain is the mean of all trials"
    yield "of a training, so with few repeats an interval contains it too easily; the width is high / low."
    yield ""
    yield "| training | change | gain | intervals with it | width | said | losses | until known |"
    yield "|---|---|---:|---:|---:|---|---|---:|"
    total, number = repeats * len(FIXES) + equal, 0
    for name, change in FIXES:
        trials = []
        for _ in range(repeats):
            progress("trial", number := number + 1, total)
            trials.append(tried(name, change, folder))
        yield row(name, change, trials)
    same = []
    for _ in range(equal):
        progress("trial", number := number + 1, total)
        same.append(tried("healthy_transformer", EQUAL, folder))
    if same:
        verdicts = [trial.found["verdict"] for trial in same]
        counts = ", ".join(f"{verdicts.count(each)} {each}" for each in sorted(set(verdicts)))
        yield ""
        yield f"Equal programs, {equal} trials: {counts}. Median {median(trial.seconds for trial in same):.0f} s."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="trials of each training (3)")
    parser.add_argument("--equal", type=int, default=20, metavar="N", help="trials of equal programs (20)")
    parser.add_argument("--write", action="store_true", help="write tests/TRIALS.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        publish(page(options.repeats, options.equal, Path(folder)), HERE / "TRIALS.md", options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
