"""Measures the diagnosis of large traces and compares it with other tools: `python tests/bench/read.py --help`.

Every tool runs as a whole process, including the start of Python, several times in turn with the others. The table
shows medians of wall time, CPU time and peak memory, and each as a multiple of ours. The large traces are a real one
repeated in time (tile.py). Each rival gets a virtual environment in the scratch folder; nothing is written elsewhere.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rivals import OURS, RIVALS, Rival

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
SIZES_MB = (50, 250, 500)
REPEATS = 5
TIMEOUT_SECONDS = 900.0
MB = 1e6


@dataclass(frozen=True)
class Run:
    """One process: wall time, CPU time, its part outside the kernel, peak memory of its largest process, and success.

    On a shared machine, CPU time is the fairer measure.
    """

    seconds: float
    cpu_seconds: float
    user_seconds: float
    peak_mb: float
    ok: bool


@dataclass(frozen=True)
class Row:
    """One tool on one trace: medians over the runs. If it failed, `runs` is 0 and `note` is the reason."""

    tool: str
    trace: str
    runs: int
    seconds: float = 0.0
    spread: tuple[float, float] = (0.0, 0.0)
    cpu_seconds: float = 0.0
    peak_mb: float = 0.0
    note: str = ""


def run_once(command: list[str], output: Path) -> Run:
    """Runs the command with its output in a file. The kernel's usage includes children that it waited for."""
    began = time.perf_counter()
    with open(output, "wb") as log, subprocess.Popen(command, stdout=log, stderr=log, cwd=CHECKOUT) as process:
        expires = began + TIMEOUT_SECONDS
        pid, status, usage = 0, 0, None
        while pid == 0:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if time.perf_counter() > expires:
                process.kill()
            time.sleep(0.002)
        process.returncode = os.waitstatus_to_exitcode(status)
    # macOS counts bytes, the others KiB.
    unit = 1 if sys.platform == "darwin" else 1024
    cpu = usage.ru_utime + usage.ru_stime
    return Run(time.perf_counter() - began, cpu, usage.ru_utime, usage.ru_maxrss * unit / MB, process.returncode == 0)


def rows_of(trace: Path, tools: dict[str, list[str]], repeats: int, scratch: Path) -> Iterator[Row]:
    """Measures every tool on this trace. The tools take turns, so that other load affects all of them alike."""
    runs: dict[str, list[Run]] = {tool: [] for tool in tools}
    for repeat in range(repeats):
        for tool, command in tools.items():
            say(f"{trace.parent.name}: {tool}, {repeat + 1} of {repeats}")
            if all(run.ok for run in runs[tool]):
                runs[tool].append(run_once([*command, str(trace)], scratch / f"{tool.split()[0]}.log"))
    for tool, done in runs.items():
        good = [run for run in done if run.ok]
        if len(good) < len(done):
            words = scratch / f"{tool.split()[0]}.log"
            yield Row(tool, trace.parent.name, 0, note=f"failed; its words are in {words}")
            continue
        seconds = [run.seconds for run in good]
        span = (min(seconds), max(seconds))
        cpu, peak = median(run.cpu_seconds for run in good), median(run.peak_mb for run in good)
        yield Row(tool, trace.parent.name, len(good), median(seconds), span, cpu, peak)


def table(rows: list[Row]) -> str:
    """Returns the rows in Markdown, with times and memory as multiples of ours."""
    bases = {row.trace: row for row in rows if row.tool == OURS}
    heads = ("trace", "tool", "wall s", "least to most", "CPU s", "peak MB", "wall ÷ ours", "CPU ÷ ours", "peak ÷ ours")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in rows:
        base = bases.get(row.trace)
        if not row.runs or base is None or not base.runs:
            lines.append(f"| {row.trace} | {row.tool} | {row.note} |" + " |" * (len(heads) - 3))
            continue
        span = f"{row.spread[0]:.2f} to {row.spread[1]:.2f}"
        cells = [row.trace, row.tool, f"{row.seconds:.2f}", span, f"{row.cpu_seconds:.2f}", f"{row.peak_mb:.0f}"]
        pairs = ((row.seconds, base.seconds), (row.cpu_seconds, base.cpu_seconds), (row.peak_mb, base.peak_mb))
        lines.append(f"| {' | '.join([*cells, *(f'{theirs / ours:.1f}' for theirs, ours in pairs)])} |")
    return "\n".join(lines)


def traces_of(source: Path, sizes: list[float], scratch: Path) -> Iterator[Path]:
    """Repeats the source until it has about each size. Files of an earlier run are reused."""
    with gzip.open(source) if source.suffix == ".gz" else open(source, "rb") as file:
        raw = sum(len(block) for block in iter(lambda: file.read(1 << 20), b""))
    name = source.name.split(".")[0]
    for size in sizes:
        times = max(1, round(size * MB / raw))
        target = scratch / "traces" / f"{name}-x{times}-{times * raw / MB:.0f}MB" / "bench.1.pt.trace.json.gz"
        if not target.exists():
            say(f"making {target.parent.name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            # In a separate process: the peak memory of a child includes that of the process that starts it.
            half = target.with_name("half.json.gz")
            subprocess.run([sys.executable, HERE / "tile.py", source, half, str(times)], check=True, stdout=sys.stderr)
            half.rename(target)
        yield target


def a_source() -> Path:
    """Returns the largest labelled public trace, or the demo's largest recording if there is none."""
    folder = Path(os.environ.get("TB_BOTTLENECK_TRACES", "/nonexistent"))
    found = list(folder.glob("*.json.gz")) or list((CHECKOUT / "demo" / "recorded").rglob("*.pt.trace.json.gz"))
    return max(found, key=_raw_size)


def _raw_size(path: Path) -> int:
    """Returns the uncompressed size, from the last four bytes of a gzip file."""
    with open(path, "rb") as file:
        file.seek(-4, os.SEEK_END)
        return int.from_bytes(file.read(4), "little")


def main() -> None:
    """Measures and prints."""
    options = _options()
    scratch = options.scratch.resolve()
    source = options.trace or a_source()
    traces = list(traces_of(source, options.sizes, scratch))
    tools: dict[str, list[str]] = {OURS: [sys.executable, "-m", "tb_bottleneck", "diagnose", "--json", "--no-cache"]}
    absent = {}
    for rival in (rival for rival in RIVALS if rival.name in options.rivals):
        command = _installed(rival, scratch)
        if command is None:
            absent[rival.name] = f"could not be installed here ({' '.join(rival.requirements)})"
        else:
            tools[rival.name] = command
    rows = [row for trace in traces for row in rows_of(trace, tools, options.repeats, scratch)]
    rows += [Row(name, "any", 0, note=note) for name, note in absent.items()]
    print(json.dumps([vars(row) for row in rows], indent=1) if options.json else table(rows))


def _installed(rival: Rival, scratch: Path) -> list[str] | None:
    say(f"environment of {rival.name}")
    return rival.command(scratch)


def say(words: str) -> None:
    """Prints progress."""
    print(words, file=sys.stderr)


def _options() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [rival.name for rival in RIVALS]
    scratch = Path(tempfile.gettempdir()) / "tb_bottleneck-bench"
    parser.add_argument("--trace", type=Path, help="the real trace that is repeated (a public one, or the demo's)")
    parser.add_argument("--sizes", type=float, nargs="+", default=SIZES_MB, metavar="MB", help="of JSON, about")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--rivals", nargs="*", default=names, choices=names, help="default: all")
    parser.add_argument("--scratch", type=Path, default=scratch, help="for traces and environments (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    main()
