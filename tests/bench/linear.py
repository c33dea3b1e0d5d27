"""Checks that time and memory grow linearly with the size of a trace: `python tests/bench/linear.py [--sizes MB]`.

The traces are a real one repeated in time (tile.py); each is diagnosed in a separate process. The table shows times and
peak memory, and the cost of each additional megabyte since the previous size, which grows if something is superlinear.
On a shared machine, use the CPU time.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from read import Run, a_source, run_once, say, traces_of

SIZES_MB = (10, 50, 250, 1000, 4000)
REPEATS = 3
OURS = [sys.executable, "-m", "tb_bottleneck", "diagnose", "--json", "--no-cache"]


@dataclass(frozen=True)
class Size:
    """One trace: its size, and medians over several processes that read it."""

    megabytes: float
    seconds: float
    cpu_seconds: float
    peak_mb: float


def measured(trace: Path, repeats: int, words: Path) -> Size:
    """Diagnoses the trace several times. Raises RuntimeError if that fails."""
    runs: list[Run] = []
    for repeat in range(repeats):
        say(f"{trace.parent.name}: {repeat + 1} of {repeats}")
        runs.append(run_once([*OURS, str(trace)], words))
    if not all(run.ok for run in runs):
        raise RuntimeError(f"{trace.parent.name} could not be diagnosed; the words are in {words}")
    megabytes = float(trace.parent.name.rpartition("-")[2].removesuffix("MB"))
    return Size(
        megabytes,
        median(run.seconds for run in runs),
        median(run.cpu_seconds for run in runs),
        median(run.peak_mb for run in runs),
    )


def table(sizes: list[Size]) -> str:
    """Returns the table in Markdown, smallest trace first."""
    heads = ("MB", "wall s", "CPU s", "peak MB", "peak ÷ size", "CPU ms per further MB", "peak MB per further MB")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for before, size in zip([None, *sizes], sizes, strict=False):
        line = [f"{size.megabytes:.0f}", f"{size.seconds:.2f}", f"{size.cpu_seconds:.2f}", f"{size.peak_mb:.0f}"]
        line.append(f"{size.peak_mb / size.megabytes:.2f}")
        if before is None:
            line += ["", ""]
        else:
            more = size.megabytes - before.megabytes
            line.append(f"{(size.cpu_seconds - before.cpu_seconds) / more * 1000:.2f}")
            line.append(f"{(size.peak_mb - before.peak_mb) / more:.2f}")
        lines.append(f"| {' | '.join(line)} |")
    return "\n".join(lines)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    scratch = Path(tempfile.gettempdir()) / "tb_bottleneck-bench"
    parser.add_argument("--trace", type=Path, help="the real trace that is repeated (a public one, or the demo's)")
    parser.add_argument("--sizes", type=float, nargs="+", default=SIZES_MB, metavar="MB", help="of JSON, about")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--scratch", type=Path, default=scratch, help="for the traces (%(default)s)")
    options = parser.parse_args()
    scratch = options.scratch.resolve()
    # If the trace is larger than several of the sizes, it is used once.
    traces = dict.fromkeys(traces_of(options.trace or a_source(), sorted(options.sizes), scratch))
    print(table([measured(trace, options.repeats, scratch / "linear.log") for trace in traces]))


if __name__ == "__main__":
    main()
