"""Measures `tb-bottleneck try`: `python tests/trials.py [--repeats N] [--equal N] [--write]`.

The slow halves of the demo's trainings are tried with the setting that fixes them, on this machine, and the time until
the gain is known is measured. Then equal programs are tried against each other. The page goes to stdout, and with
--write to tests/TRIALS.md.
"""

import argparse
import contextlib
import io
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from helpers.pages import progress, publish  # noqa: E402

from demo.index import read_index  # noqa: E402
from demo.pairs import RECORDED  # noqa: E402
from tb_bottleneck.__main__ import main as command  # noqa: E402

PROGRAM = HERE / "trial" / "demo_program.py"
FIXES = {
    "loader_in_main_process": "workers=2",
    "slow_storage": "workers=4",
    "oversubscribed_threads": "threads=2",
    "for_loop_optimizer": "fused",
    "garbage_collection": "gc_freeze",
    "unfused_pointwise": "compile",
    "healthy_transformer": "set_to_none",
}
EQUAL = "--env UNUSED=1"


def tried(name: str, change: str, folder: Path, minutes: float = 3.0) -> tuple[dict[str, Any], float]:
    """Returns the changed variant of a trial as JSON, and the seconds that it took."""
    words = ["try", *change.split(), "--json", "--logdir", str(folder), "--minutes", str(minutes), "--"]
    began, text = time.monotonic(), io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(io.StringIO()):
        command([*words, "python", str(PROGRAM), name])
    (changed,) = json.loads(text.getvalue().splitlines()[0])["changed"]
    return changed, time.monotonic() - began


def page(repeats: int, equal: int, folder: Path) -> Iterator[str]:
    """Yields the page, line by line."""
    yield "# Trials of changes"
    yield ""
    yield "Written by `python tests/trials.py --write`. The gain of the demo is that of its own fix, which may do more"
    yield "than the setting: packed files, for example. Blocks are 4 s long."
    yield ""
    yield "| training | change | gain of the demo's fix | measured | interval | verdict | losses agree | until known |"
    yield "|---|---|---:|---:|---|---|---|---:|"
    recorded = read_index(RECORDED)["pairs"]
    number = 0
    for name, change in FIXES.items():
        for _ in range(repeats):
            progress("trial", number, repeats * len(FIXES) + equal)
            number += 1
            found, seconds = tried(name, change, folder)
            gain = recorded[name].get("slow_over_fixed", 0)
            interval = "" if found.get("low") is None else f"{found['low']:.2f} to {found['high']:.2f}"
            losses = found.get("losses", {}).get("agree", "unknown")
            yield (
                f"| {name} | {change} | {gain:.2f} | {found.get('gain', 0):.2f} | {interval} | "
                f"{found.get('verdict', found['failure'])} | {losses} | {seconds:.0f} s |"
            )
    verdicts, spent = [], []
    for _ in range(equal):
        progress("trial", number, repeats * len(FIXES) + equal)
        number += 1
        found, seconds = tried("healthy_transformer", EQUAL, folder)
        verdicts.append(found["verdict"])
        spent.append(seconds)
    if verdicts:
        yield ""
        counts = ", ".join(f"{verdicts.count(each)} {each}" for each in sorted(set(verdicts)))
        yield f"Equal programs, {len(verdicts)} trials: {counts}. Median {median(spent):.0f} s."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1, metavar="N", help="trials of each training (1)")
    parser.add_argument("--equal", type=int, default=20, metavar="N", help="trials of equal programs (20)")
    parser.add_argument("--write", action="store_true", help="write tests/TRIALS.md")
    options = parser.parse_args()
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        publish(page(options.repeats, options.equal, Path(folder)), HERE / "TRIALS.md", options.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
