"""Measures TensorBoard with many clients: `python tests/bench/load.py [--runs 1000] [--ranks 8] [--clients 50]`.

A logdir of many small jobs is served by one TensorBoard, with a series of scalars. First, a few clients ask for the
scalars alone. Then many clients ask for the list of runs and for reports, each as often as the tab does while
analyses run (once per second), and those few ask for the scalars again. The table has the percentiles of the response
times, and the largest memory of the server with its worker processes, in each tenth of the time. No recording has a
saved report, so all are analysed meanwhile. A long load needs more work than that: with `--replace 10`, ten recordings
per second are written again.
"""

import argparse
import gzip
import http.client
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "tests")]

from helpers.draw import drawn  # noqa: E402
from torch.utils.tensorboard import SummaryWriter  # noqa: E402

POLL_SECONDS = 1.0  # frontend/src/app/state.ts: BUSY_MS
IDLE_SECONDS = 60.0  # at most: enough requests for the 99 %
SCALAR_CLIENTS = 4  # users of another tab
PREFIX = "/data/plugin/tb_bottleneck"
SCALARS = "/data/plugin/scalars/scalars?run=scalars&tag=loss"
_DRAWING = "\n".join(f"{name} {row * 12}" for name, row in (("gpu", "aabb.aabb."), ("nccl", "........nn")))


def write_logdir(folder: Path, runs: int, ranks: int) -> None:
    """Writes the jobs, and a run of scalars. All recordings are copies of one, but for the rank."""
    steps = "".join(chr(ord("a") + step) * 10 for step in range(12))
    files = []
    for rank in range(ranks):
        about = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks}}
        trace = drawn(f"step {steps}\n{_DRAWING}", 1000, **about)
        files.append(gzip.compress(json.dumps(trace).encode()))
    for run in range(runs):
        job = folder / f"sweep_{run // 50}" / f"job_{run:04}"
        job.mkdir(parents=True)
        for rank, data in enumerate(files):
            (job / f"rank{rank}.pt.trace.json.gz").write_bytes(data)
    with SummaryWriter(str(folder / "scalars")) as writer:
        for step in range(1000):
            writer.add_scalar("loss", 1 / (step + 1), step)


def replace(recordings: list[Path], per_second: int, end: threading.Event) -> None:
    """Writes random recordings again until the end, so that they are analysed again."""
    while per_second and not end.wait(1.0 / per_second):
        recording = random.choice(recordings)
        copy = recording.with_suffix(".new")
        copy.write_bytes(recording.read_bytes())
        copy.replace(recording)


class Clients:
    """Threads that ask in intervals; response times in seconds by kind of request."""

    def __init__(self, port: int) -> None:
        self.times: dict[str, list[float]] = defaultdict(list)
        self.errors: list[str] = []
        self._port = port
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, kind: str, path: Callable[[], str]) -> None:
        """Starts one more client."""
        self._threads.append(threading.Thread(target=self._run, args=(kind, path)))
        self._threads[-1].start()

    def end(self) -> None:
        """Ends all clients."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def since(self, seen: Counter[str]) -> str:
        """Returns the 99 % of what was measured since the last call, which `seen` remembers."""
        texts = []
        for kind, seconds in sorted(self.times.items()):
            new, seen[kind] = seconds[seen[kind] :], len(seconds)
            texts.append(f"{kind} {np.percentile(new, 99) * 1e3:.0f} ms" if new else f"{kind}: none")
        return ", ".join(texts)

    def _run(self, kind: str, path: Callable[[], str]) -> None:
        time.sleep(random.random() * POLL_SECONDS)
        tag = ""
        while not self._stop.is_set():
            began = time.perf_counter()
            try:
                status, tag = ask(self._port, path(), tag if kind == "runs" else "")
            except OSError as error:
                status = 0
                self.errors.append(repr(error))
            self.times[kind].append(time.perf_counter() - began)
            if status >= 400:
                self.errors.append(f"{kind}: status {status}")
            self._stop.wait(max(POLL_SECONDS - (time.perf_counter() - began), 0.0))


def ask(port: int, path: str, tag: str = "") -> tuple[int, str]:
    """Sends a request as a browser does; returns the status and the tag of the content."""
    connection = http.client.HTTPConnection("localhost", port, timeout=60)
    headers = {"Accept-Encoding": "gzip", "If-None-Match": tag} if tag else {"Accept-Encoding": "gzip"}
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status, response.headers.get("ETag", tag)


def listed(port: int) -> list[dict[str, object]]:
    """Returns the entries of the list of runs, once it has some."""
    while True:
        connection = http.client.HTTPConnection("localhost", port, timeout=60)
        connection.request("GET", f"{PREFIX}/runs")
        runs = json.loads(connection.getresponse().read()).get("runs", [])
        if runs:
            return list(runs)
        time.sleep(0.5)


def memory_mb(process: psutil.Process) -> float:
    """Returns the resident memory of the process and its children."""
    total = 0
    for each in [process, *process.children(recursive=True)]:
        try:
            total += each.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total / 1e6


def row(kind: str, seconds: list[float]) -> str:
    """Returns a row of the table."""
    p50, p90, p99 = np.percentile(seconds, [50, 90, 99]) * 1e3
    return f"| {kind} | {len(seconds):,} | {p50:.0f} | {p90:.0f} | {p99:.0f} | {max(seconds) * 1e3:.0f} |"


def serve(folder: Path) -> tuple[subprocess.Popen[str], int]:
    """Starts TensorBoard; returns its process and port."""
    command = [sys.executable, "-m", "tensorboard.main", "--port", "0", "--host", "localhost", "--logdir", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=CHECKOUT)
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"at http://localhost:(\d+)/", line):
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, int(found[1])
    raise SystemExit("TensorBoard did not start")


def main() -> int:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description="Measures TensorBoard with many runs and clients.")
    parser.add_argument("--runs", type=int, default=1000, help="jobs in the logdir (default: 1000)")
    parser.add_argument("--ranks", type=int, default=8, help="recordings of each (default: 8)")
    parser.add_argument("--clients", type=int, default=50, help="clients, half for the list (default: 50)")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the load (default: 60)")
    parser.add_argument("--replace", type=int, default=0, help="recordings written again per second (default: 0)")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tb_bottleneck-load-"))
    try:
        write_logdir(folder, options.runs, options.ranks)
        process, port = serve(folder)
        try:
            measure(process, port, sorted(folder.glob("*/*/*.gz")), options)
        finally:
            process.terminate()
            process.wait()
    finally:
        shutil.rmtree(folder)
    return 0


def measure(process: "subprocess.Popen[str]", port: int, recordings: list[Path], options: argparse.Namespace) -> None:
    """Prints the table."""
    server = psutil.Process(process.pid)
    time.sleep(5)  # TensorBoard reads the scalars
    idle = Clients(port)
    for _ in range(SCALAR_CLIENTS):
        idle.start("scalars, alone", lambda: SCALARS)
    time.sleep(min(options.seconds, IDLE_SECONDS))
    idle.end()
    began = time.perf_counter()
    ids = [str(entry["id"]) for entry in listed(port)]
    first = time.perf_counter() - began
    clients = Clients(port)
    for _ in range(options.clients - options.clients // 2):
        clients.start("runs", lambda: f"{PREFIX}/runs")
    for _ in range(options.clients // 2):
        clients.start("report", lambda: f"{PREFIX}/report?id={random.choice(ids)}")
    for _ in range(SCALAR_CLIENTS):
        clients.start("scalars", lambda: SCALARS)
    ended = threading.Event()
    threading.Thread(target=replace, args=(recordings, options.replace, ended)).start()
    most, start, seen = [0.0] * 10, time.monotonic(), Counter[str]()
    for tenth in range(len(most)):
        while time.monotonic() - start < (tenth + 1) * options.seconds / len(most):
            most[tenth] = max(most[tenth], memory_mb(server))
            time.sleep(1)
        print(f"{tenth + 1} of {len(most)}, 99 %:", clients.since(seen), file=sys.stderr, flush=True)
    ended.set()
    clients.end()
    states = [entry["state"] for entry in listed(port)]
    print("| request | number | median, ms | 90 % | 99 % | longest |")
    print("|---|---:|---:|---:|---:|---:|")
    for kind, seconds in sorted((idle.times | clients.times).items()):
        print(row(kind, seconds))
    done = sum(state == "done" for state in states)
    print(f"\n{len(ids):,} recordings, listed after {first:.1f} s; {done:,} analysed at the end.")
    print(
        f"Largest memory of all processes in each tenth of the time, MB: {', '.join(f'{each:.0f}' for each in most)}."
    )
    print(f"Errors: {len(clients.errors)} {clients.errors[:3]}")


if __name__ == "__main__":
    sys.exit(main())
