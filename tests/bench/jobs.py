"""Measures the analysis of a job of many ranks: `python tests/bench/jobs.py --help`.

Each rank has a trace of its own: a real one, repeated (tile.py) to about 20 MB of JSON, in which only the rank's number
differs. Every run is a whole `diagnose` of the folder. Memory is the peak of each process as the kernel counts it, and
the coordinator is the process that was started. The last table judges summaries that are in memory already, which is
all that the coordinator does once the traces are read. HolisticTraceAnalysis loads the same folder, with more and more
ranks until it fails or takes too long.
"""

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from read import CHECKOUT, say
from rivals import RIVALS
from tile import tile

SOURCE = "hta_ddp_a100_ws2_ncclmeta.json.gz"
GROWTH = (100, 1_000, 10_000)
HTA_LIMIT_SECONDS = 300.0
MB = 1e6
POLL_SECONDS = 0.1

_HTA = """
import glob, os, sys
from hta.trace_analysis import TraceAnalysis
files = sorted(glob.glob(os.path.join(sys.argv[1], "*.json.gz")))[: int(sys.argv[2])]
analysis = TraceAnalysis(trace_files=dict(enumerate(files)), trace_dir=sys.argv[1])
analysis.get_temporal_breakdown(visualize=False)
analysis.get_comm_comp_overlap(visualize=False)
"""

_JUDGE = """
import pickle, resource, sys, time
from dataclasses import replace
from tb_bottleneck.jobs.report.job_report import judged_together
from tb_bottleneck.jobs.summary.encoding import decode, encode
from tb_bottleneck.schema.bottleneck_pb2 import Report
count = int(sys.argv[2])
with open(sys.argv[1], "rb") as file:
    summary, report = pickle.load(file)
summary, report = decode(summary), Report.FromString(report)
summaries, reports = [], []
for rank in range(count):
    facts = replace(summary.facts, rank=rank, world_size=count, begin_ns=summary.facts.begin_ns + rank % 97 * 1000)
    groups = tuple(replace(group, ranks=tuple(range(count)), size=count) for group in summary.groups)
    summaries.append(encode(replace(summary, facts=facts, groups=groups)))
    report.rank, report.world_size = rank, count
    reports.append(Report.FromString(report.SerializeToString()))
began, cpu = time.perf_counter(), time.process_time()
_, jobs = judged_together(["."] * count, reports, summaries)
used = time.process_time() - cpu
size = sum(map(len, summaries)) / count
print(len(jobs[0].ranks), jobs[0].replay.error, used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000, size)
"""


@dataclass(frozen=True)
class Usage:
    """One run: wall and CPU seconds of all processes, peak MB of the first process, of the largest other and of all."""

    seconds: float
    cpu_seconds: float
    first_mb: float
    others_mb: float
    total_mb: float
    ok: bool


def rank_files(source: Path, folder: Path, ranks: int, megabytes: float) -> float:
    """Writes one trace per rank, and returns the size of each in MB of JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(source) as file:
        once = len(file.read()) / MB
    times = max(1, round(megabytes / once))
    whole = folder.with_suffix(".json")
    tile(source, whole, times)
    text = whole.read_text(encoding="utf-8", errors="surrogateescape")
    head, mark, body = text.partition('"traceEvents"')
    shown = ", ".join(map(str, range(min(ranks, 30)))) + (", ..." if ranks > 30 else "")
    body = body.replace('"Process Group Ranks": "[0, 1]"', f'"Process Group Ranks": "[{shown}]"')
    body = re.sub(r'"Group size": 2\b', f'"Group size": {ranks}', body)
    packed = gzip.compress((mark + body).encode("utf-8", "surrogateescape"), 6)
    for rank in range(ranks):
        own = re.sub(r'"rank": \d+', f'"rank": {rank}', re.sub(r'"world_size": \d+', f'"world_size": {ranks}', head))
        own = own.replace('"pg_size": 2', f'"pg_size": {ranks}').replace("[0, 1]", json.dumps(list(range(ranks))))
        # A gzip file may consist of several members: only the header is compressed per rank.
        (folder / f"rank{rank:05}.1.pt.trace.json.gz").write_bytes(gzip.compress(own.encode()) + packed)
    whole.unlink()
    return len(text) / MB


def used_by(command: list[str], log: Path, limit: float = 7_200.0, **environment: str) -> Usage:
    """Runs a command, and watches the memory of its processes."""
    began, peaks = time.perf_counter(), {}
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, cwd=CHECKOUT, env={**os.environ, **environment}
        )
    watched, cpu = psutil.Process(process.pid), {}
    while process.poll() is None and time.perf_counter() - began < limit:
        for one in [watched, *_children(watched)]:
            try:
                cpu[one.pid] = sum(one.cpu_times()[:2])
                peaks[one.pid] = max(peaks.get(one.pid, 0.0), _peak_mb(one.pid))
            except (psutil.Error, OSError):
                continue
        time.sleep(POLL_SECONDS)
    if process.poll() is None:
        for one in [*_children(watched), watched]:
            one.kill()
    process.wait()
    others = [peak for pid, peak in peaks.items() if pid != process.pid]
    return Usage(
        seconds=time.perf_counter() - began,
        cpu_seconds=sum(cpu.values()),
        first_mb=peaks.get(process.pid, 0.0),
        others_mb=max(others, default=0.0),
        total_mb=sum(peaks.values()),
        ok=process.returncode == 0,
    )


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def _peak_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024 / MB
    return 0.0


def scale_rows(folder: Path, ranks: int, megabytes: float, cores: int, scratch: Path) -> Iterator[str]:
    """Yields the table of whole runs."""
    heads = ("run", "ranks", "MB each", "load before", "wall s", "CPU s", "traces per minute and core, by wall time")
    heads = (*heads, "by CPU time", "coordinator MB", "largest worker MB")
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    diagnose = [sys.executable, "-m", "tb_bottleneck", "diagnose", str(folder), "--json"]
    cache = {"TB_BOTTLENECK_CACHE": str(scratch / "cache")}
    processes, dask = ["--processes", str(cores)], ["--workers", str(cores)]
    runs: tuple[tuple[str, list[str], dict[str, str]], ...] = (
        ("processes", [*processes, "--no-cache"], {}),
        ("Dask LocalCluster", [*dask, "--no-cache"], {}),
        ("processes, fills the cache", processes, cache),
        ("processes, from the cache", processes, cache),
    )
    for name, options, environment in runs:
        say(name)
        load = os.getloadavg()[0]
        usage = used_by([*diagnose, *options], scratch / "run.log", **environment)
        rates = [ranks / seconds * 60 / cores for seconds in (usage.seconds, usage.cpu_seconds / cores)]
        cells = [name if usage.ok else f"{name} (failed)", str(ranks), f"{megabytes:.1f}", f"{load:.1f}"]
        cells += [f"{usage.seconds:.0f}", f"{usage.cpu_seconds:.0f}", *(f"{rate:.0f}" for rate in rates)]
        yield f"| {' | '.join([*cells, f'{usage.first_mb:.0f}', f'{usage.others_mb:.0f}'])} |"


def growth_rows(folder: Path, scratch: Path, sizes: tuple[int, ...]) -> Iterator[str]:
    """Yields the table of the coordinator's work alone."""
    kept = scratch / "rank.pickle"
    first = next(iter(sorted(folder.glob("*.gz"))))
    keep = (
        "import pickle, sys; from tb_bottleneck.jobs.execution.rank_analysis import Task, analyse\n"
        "result = analyse(Task(sys.argv[1], '.', cache=False))\n"
        "pickle.dump((result.summary, result.report), open(sys.argv[2], 'wb'))"
    )
    subprocess.run([sys.executable, "-c", keep, str(first), str(kept)], check=True, cwd=CHECKOUT)
    yield "| summaries | KB each | CPU s | CPU ms per summary | peak MB | error of the replay |"
    yield "|---|---|---|---|---|---|"
    for size in sizes:
        say(f"{size} summaries")
        command = [sys.executable, "-c", _JUDGE, str(kept), str(size)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT)
        if done.returncode:
            yield f"| {size} | failed: {done.stderr.strip().splitlines()[-1]} | | | | |"
            continue
        _, error, cpu, peak, each = map(float, done.stdout.split())
        yield f"| {size} | {each / 1000:.1f} | {cpu:.1f} | {cpu / size * 1000:.2f} | {peak:.0f} | {error:.2%} |"


def hta_rows(folder: Path, python: str, ranks: int, scratch: Path) -> Iterator[str]:
    """Yields the table of HolisticTraceAnalysis."""
    yield "| ranks | wall s | CPU s | peak MB of its largest process |"
    yield "|---|---|---|---|"
    count = 1
    while count <= ranks:
        say(f"HolisticTraceAnalysis, {count} ranks")
        usage = used_by([python, "-c", _HTA, str(folder), str(count)], scratch / "hta.log", HTA_LIMIT_SECONDS)
        cells = f"{usage.seconds:.0f} | {usage.cpu_seconds:.0f} | {max(usage.first_mb, usage.others_mb):.0f}"
        yield f"| {count} | {cells if usage.ok else f'failed after {usage.seconds:.0f} s | |'} |"
        if not usage.ok:
            return
        needed, free = 4 * usage.total_mb, psutil.virtual_memory().available / MB
        count *= 4
        if needed > free:
            yield f"| {count} | not tried: about {needed / 1000:.0f} GB, {free / 1000:.0f} GB are free | | |"
            return


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    folder = os.environ.get("TB_BOTTLENECK_TRACES", "")
    parser.add_argument("--trace", type=Path, default=Path(folder) / SOURCE, help="a trace of one rank (%(default)s)")
    parser.add_argument("--ranks", type=int, default=1_000)
    parser.add_argument("--megabytes", type=float, default=20.0, help="of JSON per rank, about")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--growth", type=int, nargs="*", default=GROWTH, help="numbers of summaries")
    parser.add_argument("--hta", metavar="PYTHON", help="an environment with HolisticTraceAnalysis; default: made here")
    scratch = Path(tempfile.gettempdir()) / "tb_bottleneck-bench" / "jobs"
    parser.add_argument("--scratch", type=Path, default=scratch, help="for the traces (%(default)s)")
    options = parser.parse_args()
    traces = options.scratch / f"{options.ranks}x{options.megabytes:.0f}"
    say(f"{options.ranks} traces under {traces}")
    size = rank_files(options.trace, traces, options.ranks, options.megabytes)
    for line in scale_rows(traces, options.ranks, size, options.cores, options.scratch):
        print(line, flush=True)
    print()
    for line in growth_rows(traces, options.scratch, tuple(options.growth)):
        print(line, flush=True)
    rival = next(rival for rival in RIVALS if rival.name.startswith("Holistic"))
    python = options.hta or next(iter(rival.command(options.scratch) or []), "")
    print()
    for line in hta_rows(traces, python, options.ranks, options.scratch) if python else ("It could not be installed.",):
        print(line, flush=True)


if __name__ == "__main__":
    main()
