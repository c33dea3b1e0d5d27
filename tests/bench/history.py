"""Remembers how fast traces are diagnosed: `python tests/bench/history.py [--check | --record]`.

Two recordings of the demo, one of a GPU and one of a CPU, are repeated to about 200 MB (tile.py). Whole processes of
`diagnose`, with each reader, take turns with one that only parses the same file with orjson. The table has the ratios
of the least CPU time and peak memory: those of `diagnose` / those of orjson. They can be compared between machines,
and are compared with those of earlier commits in history.csv. CPU time is that outside the kernel: a virtual machine
takes 1.5 to 9 s to give orjson its memory, and the same 4.3 to 7.8 s to parse.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from read import CHECKOUT, HERE, Run, run_once, say, traces_of
from rivals import RIVALS

FILE = HERE / "history.csv"
SOURCES = {"gpu": "fp32_matmul/fixed", "cpu": "for_loop_optimizer/slow"}
READERS = ("native", "pure")
MEGABYTES = 200.0
SLOWER, LARGER = 1.15, 1.10
"""Ratios to the best earlier row from which --check fails."""
OURS = [sys.executable, "-m", "tb_bottleneck", "diagnose", "--json", "--no-cache"]
COLUMNS = ("commit", "trace", "reader", "cpu", "peak")


def measured(scratch: Path, repeats: int) -> list[dict[str, str]]:
    """Returns one row of history.csv per trace and reader, for this commit."""
    parser = RIVALS[0].command(scratch)
    if parser is None:
        raise RuntimeError(f"{RIVALS[0].name} could not be installed; its output is above.")
    git = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(git, cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout.strip()
    rows = []
    for name, folder in SOURCES.items():
        (source,) = (CHECKOUT / "demo" / "recorded" / folder).glob("*.pt.trace.json.gz")
        (trace,) = traces_of(source, [MEGABYTES], scratch)
        runs: dict[str, list[Run]] = {tool: [] for tool in ("orjson", *READERS)}
        for repeat in range(repeats):
            say(f"{name}: {repeat + 1} of {repeats}")
            for tool, done in runs.items():
                os.environ["TB_BOTTLENECK_READER"] = tool if tool in READERS else ""
                done.append(run_once([*(OURS if tool in READERS else parser), str(trace)], scratch / "history.log"))
                if not done[-1].ok:
                    raise RuntimeError(f"{tool} failed for {trace}; its output is in {scratch / 'history.log'}.")
        # The least of several runs, because other programs on the machine only add to the CPU time.
        cpu = {tool: min(run.user_seconds for run in done) for tool, done in runs.items()}
        peak = {tool: min(run.peak_mb for run in done) for tool, done in runs.items()}
        for reader in READERS:
            ratios = (f"{cpu[reader] / cpu['orjson']:.3f}", f"{peak[reader] / peak['orjson']:.3f}")
            rows.append(dict(zip(COLUMNS, (commit, name, reader, *ratios), strict=True)))
    return rows


def worse(row: dict[str, str], earlier: list[dict[str, str]]) -> list[str]:
    """Returns a sentence per ratio of `row` that is worse than the best of the rows `earlier` allows."""
    same = [other for other in earlier if (other["trace"], other["reader"]) == (row["trace"], row["reader"])]
    found = []
    for column, limit in (("cpu", SLOWER), ("peak", LARGER)):
        best = min(same, key=lambda other: float(other[column]), default=None)
        if best is not None and float(row[column]) > limit * float(best[column]):
            found.append(
                f"{row['trace']}, {row['reader']} reader: {column} {row[column]} of orjson, "
                f"{float(row[column]) / float(best[column]):.2f} times that of {best['commit']} ({best[column]})"
            )
    return found


def main() -> int:
    """Measures, prints the rows, and compares or records them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    scratch = Path(tempfile.gettempdir()) / "tb_bottleneck-bench"
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="fail if 15 %% slower or 10 %% larger than the best row")
    what.add_argument("--record", action="store_true", help=f"append the rows to {FILE.name}")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scratch", type=Path, default=scratch, help="for the traces (%(default)s)")
    options = parser.parse_args()
    rows = measured(options.scratch.resolve(), options.repeats)
    with FILE.open(newline="") as file:
        earlier = list(csv.DictReader(file))
    csv.DictWriter(sys.stdout, COLUMNS).writerows(rows)
    if options.record:
        with FILE.open("a", newline="") as file:
            csv.DictWriter(file, COLUMNS, lineterminator="\n").writerows(rows)
    problems = [sentence for row in rows for sentence in worse(row, earlier)] if options.check else []
    print(*problems, sep="\n")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
