"""Measures `tb-bottleneck try`: `python tests/measurements/trials.py [--repeats N] [--equal N] [--write]`.

The slow halves of the demo's trainings are tried with what fixes them, several times each, on this machine. The truth
is the mean of all trials of a training; counted is how often the interval of a trial contains it. Between them, equal
programs are tried against each other: steady trainings against themselves.

The trials are kept in tests/trial/trials.jsonl, which is published with the page, and a run goes on after those that
are there. Nothing else may use the machine meanwhile. The page goes to stdout, and with --write to TRIALS.md.
"""

import argparse
import contextlib
import io
import json
import math
import os
import shlex
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent), str(HERE)]

from pages import progress, publish  # noqa: E402

from demo.pairs import PAIRS, RECORDED  # noqa: E402
from tb_bottleneck.__main__ import main as command  # noqa: E402

PROGRAM = HERE.parent / "trial" / "demo_program.py"
KEPT = HERE.parent / "trial" / "trials.jsonl"
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
    ("garbage_collection", FIXED),
    ("loader_in_main_process", FIXED),
    ("activation_checkpointing", FIXED),
    ("slow_storage", "workers=2"),
    ("for_loop_optimizer", "foreach"),
)
EQUAL = "--env UNUSED=1"
STEADY = ("healthy_transformer", "for_loop_optimizer", "gradient_accumulation", "small_batch", "garbage_collection")
"""Trainings that neither read nor write files, whose blocks take equally long."""
SECONDS, MINUTES = 2.0, 2.0
EQUAL_MINUTES = 4.0
"""Twenty rounds; to show that there is no difference takes more of them than to show a gain."""


@dataclass(frozen=True)
class Tried:
    """What a trial said of the changed variant, and the seconds that it took. `low` and `high` are 0 if unknown."""

    name: str
    change: str
    verdict: str
    gain: float
    low: float
    high: float
    losses: str
    seconds: float

    @property
    def is_known(self) -> bool:
        """True if the trial gave an interval."""
        return self.low > 0


def tried(name: str, change: str, logdir: Path) -> Tried:
    """Tries a change of a training of the demo."""
    equal = change == EQUAL
    folder = logdir / ("equal" if equal else name)
    recording = RECORDED / name / "slow"
    if not equal and recording.is_dir() and not (folder / "recorded").exists():
        shutil.copytree(recording, folder / "recorded")
    words = ["try", *shlex.split(change), "--json", "--logdir", str(folder)]
    if change == FIXED:
        words += ["--cause", (PAIRS[name].fixed_causes or PAIRS[name].memory).split(" or ")[0]]
    words += ["--minutes", str(EQUAL_MINUTES if equal else MINUTES), "--seconds", str(SECONDS), "--"]
    began, text = time.monotonic(), io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
        command([*words, "python", str(PROGRAM), name])
    (found,) = json.loads(text.getvalue().splitlines()[0])["changed"]
    agree = {True: "agree", False: "differ", None: "unknown"}[(found.get("losses") or {}).get("agree")]
    low, high = found.get("low") or 0.0, found.get("high") or 0.0
    verdict = found.get("verdict") or f"failed: {found['failure']}"
    seconds = round(time.monotonic() - began)
    return Tried(
        name, change, verdict, *(round(each, 4) for each in (found.get("gain") or 0.0, low, high)), agree, seconds
    )


def wanted(repeats: int, equal: int) -> Iterator[tuple[str, str]]:
    """Yields the trainings and changes in the order of their trials: one trial of each, then some of equal programs."""
    done = 0
    for repeat in range(repeats):
        yield from FIXES
        for _ in range(equal * (repeat + 1) // repeats - done):
            yield STEADY[done % len(STEADY)], EQUAL
            done += 1


def measure(repeats: int, equal: int, logdir: Path) -> list[Tried]:
    """Returns all trials: those that were kept, and the others, which are run and kept."""
    lines = KEPT.read_text(encoding="utf-8").splitlines() if KEPT.exists() else []
    trials = [Tried(**json.loads(line)) for line in lines]
    kept, plan = Counter((trial.name, trial.change) for trial in trials), list(wanted(repeats, equal))
    for number, (name, change) in enumerate(plan, 1):
        if kept[name, change]:
            kept[name, change] -= 1
            continue
        progress("trial", number, len(plan))
        trials.append(tried(name, change, logdir))
        with KEPT.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(trials[-1])) + "\n")
    return trials


def row(name: str, change: str, trials: Sequence[Tried]) -> str:
    """Returns the line of a training."""
    known = [trial for trial in trials if trial.is_known]
    if not known:
        return f"| {name} | {change} | | 0 of {len(trials)} | | {counts(trials)} | | |"
    truth = math.exp(fmean(math.log(trial.gain) for trial in known))
    inside = sum(trial.low <= truth <= trial.high for trial in known)
    width = median(trial.high / trial.low for trial in known)
    losses = {trial.losses for trial in known}
    said = losses.pop() if len(losses) == 1 else "not always"
    return (
        f"| {name} | {change} | {truth:.2f} | {inside} of {len(trials)} | {width:.2f} | {counts(known)} | {said} | "
        f"{median(trial.seconds for trial in known):.0f} s |"
    )


def page(trials: Sequence[Tried]) -> Iterator[str]:
    """Yields the page, line by line."""
    same = [trial for trial in trials if trial.change == EQUAL]
    repeats = min(sum((trial.name, trial.change) == fix for trial in trials) for fix in FIXES)
    yield "# Trials of changes"
    yield ""
    yield f"Written by `python tests/measurements/trials.py --repeats {repeats} --equal {len(same)} --write`."
    yield f"{os.cpu_count()} cores, {SECONDS:.0f} s of each program in a round, at most {MINUTES:.0f} minutes for each"
    yield "trial. The gain is the mean of all trials of a training, so with few repeats an interval contains it too"
    yield "easily; the width is high / low. The measurement goes on with tests/trial/trials.jsonl."
    yield ""
    yield "| training | change | gain | intervals with it | width | said | losses | until known |"
    yield "|---|---|---:|---:|---:|---|---|---:|"
    yield from (row(*fix, [trial for trial in trials if (trial.name, trial.change) == fix]) for fix in FIXES)
    if same:
        yield ""
        yield f"Equal programs, {len(same)} trials of at most {EQUAL_MINUTES:.0f} minutes: {counts(same)}. Median"
        yield f"{median(trial.seconds for trial in same):.0f} s. Unknown is the right answer where equal blocks differ."
        yield ""
        yield "| training, tried against itself | said |"
        yield "|---|---|"
        for name in dict.fromkeys(trial.name for trial in same):
            yield f"| {name} | {counts([trial for trial in same if trial.name == name])} |"


def counts(trials: Sequence[Tried]) -> str:
    """Returns how often each verdict was given."""
    verdicts = [trial.verdict for trial in trials]
    return ", ".join(f"{verdicts.count(each)} {each}" for each in sorted(set(verdicts)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="trials of each training (3)")
    parser.add_argument("--equal", type=int, default=20, metavar="N", help="trials of equal programs (20)")
    parser.add_argument("--write", action="store_true", help="write tests/measurements/TRIALS.md")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as logdir:
        trials = measure(options.repeats, options.equal, Path(logdir))
    publish(page(trials), HERE / "TRIALS.md", options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
