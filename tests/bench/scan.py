"""Measures the tab's server on a large logdir: `python tests/bench/scan.py [--runs 1000] [--ranks 8]`.

Every recording is the same small trace of the demo with a different name. The server is the real WSGI application in a
separate process, with real workers; its reports are in the disk cache, as after a restart of TensorBoard.
"""

import argparse
import gzip
import json
import os
import re
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT))

from tb_bottleneck.base.persistence import CACHE_VARIABLE  # noqa: E402
from tb_bottleneck.diagnosis.trace import diagnose  # noqa: E402
from tb_bottleneck.plugin.plugin import ANALYSE  # noqa: E402
from tb_bottleneck.report.cache.report_store import Store, identity_of  # noqa: E402
from tb_bottleneck.sources.logdir import scan  # noqa: E402
from tests.plugin.tenant import Tenant  # noqa: E402

BROWSER = {"Accept-Encoding": "gzip"}
POLL_SECONDS = 1.0  # polling interval of the tab while analyses run
REPEATS = 9  # for a median


def make_logdir(logdir: Path, runs: int, ranks: int) -> None:
    """Creates a directory per run and a file per rank, as hard links, because only the names matter here."""
    (trace,) = (CHECKOUT / "demo/recorded/loader_in_main_process/fixed").glob("*.gz")
    logdir.mkdir()
    shutil.copy(trace, logdir.parent / "trace.gz")
    for run in range(runs):
        folder = logdir / f"experiment{run % 20:02}" / f"run{run:04}"
        folder.mkdir(parents=True)
        for rank in range(ranks):
            os.link(logdir.parent / "trace.gz", folder / f"host{rank}_{1000 + rank}.1795251683.pt.trace.json.gz")


def keep_reports(logdir: Path) -> None:
    """Writes a report for each recording into the cache."""
    store = Store.from_environment(os.environ)
    assert store is not None
    recordings = scan(logdir).recordings
    report = diagnose(recordings[0].path)
    for recording in recordings:
        identity = identity_of(recording.path)
        assert identity is not None
        store.put(identity, report)


def timed(ask: Callable[[], object]) -> float:
    """Returns the median of several times, in seconds."""
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        ask()
        times.append(time.perf_counter() - began)
    return median(times)


def row(what: str, value: float, unit: str = "s") -> None:
    """Prints one line of the table."""
    print(f"| {what} | {value:.3f} {unit} |" if unit == "s" else f"| {what} | {value:,.1f} {unit} |", flush=True)


def measure(logdir: Path) -> None:
    """Prints the table."""
    print("| what | measured |\n|---|---|")
    row("a look at the logdir", timed(lambda: scan(logdir)))
    row("peak memory before the server starts", peak_mb(), "MB")
    began = time.perf_counter()
    tenant = Tenant(logdir, analyse=ANALYSE)
    with closing(tenant.plugin):
        tenant.listed()
        row("from start until `runs` lists all", time.perf_counter() - began)
        slowest = watch(tenant)
        row("from start until all are done, by the reports on disk", time.perf_counter() - began)
        row("`runs` meanwhile, slowest", slowest)
        measure_routes(tenant)
    row("peak memory of the server's process", peak_mb(), "MB")


def watch(tenant: Tenant) -> float:
    """Polls like the tab until all recordings are done. Returns the longest time of a `runs` request, in seconds."""
    slowest = 0.0
    while True:
        began = time.perf_counter()
        answer = tenant.get("runs", headers=BROWSER)
        slowest = max(slowest, time.perf_counter() - began)
        if all(entry["state"] == "done" for entry in json.loads(gzip.decompress(answer.data))["runs"]):
            return slowest
        time.sleep(POLL_SECONDS)


def measure_routes(tenant: Tenant) -> None:
    """Measures the routes once all recordings are done."""
    answer = tenant.get("runs", headers=BROWSER)
    row("`runs` once all are done", timed(lambda: tenant.get("runs", headers=BROWSER)))
    row("its size", len(gzip.decompress(answer.data)) / 1e6, "MB")
    row("its size, compressed", len(answer.data) / 1e6, "MB")
    same = BROWSER | {"If-None-Match": answer.headers["ETag"]}
    row("`runs` unchanged, a 304", timed(lambda: tenant.get("runs", headers=same)))
    last = json.loads(gzip.decompress(answer.data))["runs"][-1]["id"]
    row("`report` of one recording", timed(lambda: tenant.get(f"report?id={last}", headers=BROWSER)))


def peak_mb() -> float:
    """Returns the memory of this process, or 0 if it is unknown."""
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+)", status.read_text()) if status.exists() else None
    return int(found[1]) * 1024 / 1e6 if found else 0.0


def main() -> None:
    """Creates the logdir, fills the cache and measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--ranks", type=int, default=8)
    options = parser.parse_args()
    warnings.simplefilter("ignore", DeprecationWarning)  # TensorBoard's way to answer a 304
    with tempfile.TemporaryDirectory() as scratch:
        os.environ[CACHE_VARIABLE] = str(Path(scratch) / "cache")
        logdir = Path(scratch) / "logdir"
        make_logdir(logdir, options.runs, options.ranks)
        keep_reports(logdir)
        measure(logdir)


if __name__ == "__main__":
    main()
