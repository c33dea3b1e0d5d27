"""Measures the accuracy of predicted gains: `python tests/gains.py [--runs N] [--write]`.

Simulated trainings with a planted cause are recorded and diagnosed; then the same training is simulated with its fix
(simulate/fixes.py), and the predicted gain is compared with the true one. The recorded pairs of demo/ are real: the
prediction from the slow half's trace is compared with the ratio of both halves' unprofiled step times. The table goes
to stdout, and with --write to tests/GAINS.md; progress goes to stderr.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from helpers.pages import progress, publish  # noqa: E402
from simulate.fixes import FIXES  # noqa: E402
from simulate.pairs import Pair, finding_of, pair_of, planned, simulated  # noqa: E402

from demo.pairs import PAIRS  # noqa: E402
from tb_bottleneck.diagnosis.trace import diagnose  # noqa: E402

# Held out: the simulator's fixes were examined with other seeds while the scenarios were written.
FIRST_SEED = 70_000
TARGET_MEDIAN, TARGET_WORST = 0.05, 0.15
# This share of the runs has several causes at once.
PLANS_SHARE = 0.2


# --- Recorded trainings ---


def recorded() -> Iterator[Pair]:
    """Yields the recorded pairs of demo/ with a simulated fix and with unprofiled step times of both halves."""
    folder = HERE.parent / "demo" / "recorded"
    if not (folder / "recorded.json").exists():
        return
    for name, halves in json.loads((folder / "recorded.json").read_text())["pairs"].items():
        if not PAIRS[name].fixed_causes or "slow_over_fixed" not in halves:
            continue
        trace = folder / name / "slow" / halves["slow"]["trace"]
        finding = finding_of(diagnose(str(trace)), tuple(PAIRS[name].fixed_causes.split(" or ")))
        yield pair_of(name, 0, halves["slow_over_fixed"], finding)


# --- The page ---


def page(runs: int) -> Iterator[str]:
    """Yields the whole page, line by line."""
    plans = max(round(runs * PLANS_SHARE), 1)
    names, pairs, several = list(FIXES), [], []
    for number in range(runs):
        progress("simulated pair", number + 1, runs)
        if number < plans:
            several.append(planned(FIRST_SEED + number))
        else:
            turn, which = divmod(number - plans, len(names))
            pairs.append(simulated(names[which], FIRST_SEED + turn))
    yield "# Predicted gains"
    yield ""
    yield "Written by `python tests/gains.py --write`. Figures as they come; nothing is left out."
    yield ""
    yield "Read them with care. In the simulator, a fix does what its advice says, and nothing else changes; the host"
    yield "is not slowed by a profiler, and the recording says so. Errors here are errors of the replay and of the"
    yield "scenarios only: caches, contention and clocks are not simulated. The pairs at the end are real."
    yield ""
    yield f"## {len(pairs)} simulated trainings, before and after the fix"
    yield ""
    yield from summary(pairs)
    yield ""
    yield "| planted | runs | predicted | true gain, median | error, median | error, worst | inside the bounds |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    yield from (row(name, [pair for pair in pairs if pair.name == name]) for name in names)
    yield ""
    yield f"## {len(several)} simulated trainings with two or three causes"
    yield ""
    yield "The gain of the whole plan, compared with the training with all its fixes. Gains do not add up: the gain of"
    yield "a fix depends on the others."
    yield ""
    yield from summary(several)
    yield ""
    yield f"## Misses: errors above {TARGET_WORST:.0%}"
    yield ""
    yield from list(misses([*pairs, *several])) or ["None."]
    yield ""
    yield "## Recorded trainings"
    yield ""
    yield from real_table()


def summary(pairs: list[Pair]) -> Iterator[str]:
    """Yields the statistics of all pairs together."""
    errors = sorted(abs(pair.error) for pair in pairs if pair.predicted)
    if not errors:
        yield "Nothing was predicted."
        return
    within = sum(error <= TARGET_WORST for error in errors) / len(errors)
    yield f"A gain was predicted for {len(errors)} of {len(pairs)}. Error of the gain: median {median(errors):.1%}"
    yield f"(target {TARGET_MEDIAN:.0%}), worst {errors[-1]:.1%} (target {TARGET_WORST:.0%}), {within:.1%} within"
    yield f"{TARGET_WORST:.0%}. The true gain lies between the predicted bounds in"
    yield f"{sum(pair.inside for pair in pairs if pair.predicted) / len(errors):.1%}."


def row(name: str, pairs: list[Pair]) -> str:
    """Returns the row of one planted cause."""
    predicted = [pair for pair in pairs if pair.predicted]
    if not predicted:
        return f"| {name} | {len(pairs)} | 0 | - | - | - | - |"
    errors = sorted(abs(pair.error) for pair in predicted)
    true = median(pair.true for pair in predicted)
    inside = sum(pair.inside for pair in predicted) / len(predicted)
    cells = (
        name,
        len(pairs),
        len(predicted),
        f"{true:.2f}x",
        f"{median(errors):.1%}",
        f"{errors[-1]:.1%}",
        f"{inside:.0%}",
    )
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def misses(pairs: list[Pair]) -> Iterator[str]:
    """Yields the predictions with an error above the target."""
    for pair in pairs:
        if pair.predicted and abs(pair.error) > TARGET_WORST:
            bounds = f"{pair.low:.2f} to {pair.high:.2f}"
            yield f"- {pair.name}, seed {pair.seed}: {pair.expected:.2f}x ({bounds}) predicted, {pair.true:.2f}x true"


def real_table() -> Iterator[str]:
    """Yields the recorded pairs, one line each."""
    yield "Predicted from the slow half's trace alone; measured is the ratio of both halves' unprofiled step times."
    yield ""
    yield "| pair | predicted | bounds | measured | error |"
    yield "|---|---:|---|---:|---:|"
    for pair in recorded():
        if pair.predicted:
            bounds = f"{pair.low:.2f} to {pair.high:.2f}"
            yield f"| {pair.name} | {pair.expected:.2f}x | {bounds} | {pair.true:.2f}x | {pair.error:+.1%} |"
        else:
            yield f"| {pair.name} | none | | {pair.true:.2f}x | |"


def main() -> int:
    """Runs the command."""
    parser = argparse.ArgumentParser(description="Measures the error of predicted gains.")
    parser.add_argument("--runs", type=int, default=400, help="simulated pairs (default: 400)")
    parser.add_argument("--write", action="store_true", help="write tests/GAINS.md as well")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs must be at least 1")
    publish(page(options.runs), HERE / "GAINS.md", options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
