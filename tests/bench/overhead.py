"""Measures the monitor's overhead: step times with and without it, for steps of 1, 10 and 100 ms, against `traceml-ai`.

    python tests/bench/overhead.py --scratch FOLDER

One process trains in blocks with and without the monitor in turn, so that other load affects both alike. The step time
of a block is its lower quartile, and also its mean. A monitored block is compared with the blocks before and after it;
the same comparison of unmonitored blocks gives the noise. Figures are medians over all blocks of all rounds; in each
round, every monitor runs at every step length. traceml runs in a separate process, as with `traceml run`, with
`trace_step` in every other block: the cost of its own threads and processes falls on both kinds of blocks, so its
figure is a lower bound, while ours starts and stops with each block and includes everything. No traces are recorded.
The machine's load during the run is printed below the table.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import Any

HEADS = {"steps of": 9, "monitor": 14, "wall": 25, "wall, mean": 25, "processor": 25, "noise": 18, "n": 7}
OURS, TRACEML = "tb_bottleneck", "traceml-ai"
RESULT = "overhead: "


class NoResult(Exception):
    """A training ended without a result; str() is a message for the user."""


def lower_quartile(times: list[int]) -> float:
    """Returns the typical undisturbed step: the lower quartile is least affected by other load."""
    return quantiles(times, n=4)[0]


# Figures of a block: (wall times of its steps, CPU time of the training thread in each).
FIGURES: dict[str, Callable[[tuple[list[int], list[int]]], float]] = {
    "quick": lambda block: lower_quartile(block[0]),
    "mean": lambda block: fmean(block[0]),
    "thread": lambda block: lower_quartile(block[1]),
}


def main() -> None:
    """Runs the benchmark, or with `--work` one of its trainings."""
    options = arguments()
    if options.work:
        print(RESULT + json.dumps(train(options.work, options.ms[0], options.pairs, options.block)), flush=True)
        return
    rival = installed(options.scratch) if options.scratch else None
    print(" ".join(f"{head:>{width}}" for head, width in HEADS.items()), flush=True)
    kinds = (OURS, TRACEML) if rival else (OURS,)
    runs: dict[tuple[float, str], list[dict[str, Any]]] = {(ms, kind): [] for ms in options.ms for kind in kinds}
    loads = []
    for number in range(options.rounds):
        for (step_ms, kind), results in runs.items():
            print(f"round {number + 1} of {options.rounds}: {kind}, {step_ms:g} ms", file=sys.stderr, flush=True)
            try:
                results.append(run(kind, step_ms, options, rival))
            except NoResult as failure:
                print(failure, file=sys.stderr)
            loads.append(os.getloadavg()[0])
    for (step_ms, kind), results in runs.items():
        if results:
            show(kind, merge(results))
        else:
            print(f"{step_ms:>6.2f} ms {kind:>14} gave no result in any round", flush=True)
    print(f"load of the machine: {min(loads):.1f} to {max(loads):.1f}, {os.cpu_count()} cores", flush=True)


def arguments() -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ms", type=float, nargs="+", default=[1, 10, 100], help="lengths of a step")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each monitor")
    parser.add_argument("--pairs", type=int, default=5, help="monitored blocks per run; one more is unmonitored")
    parser.add_argument("--block", type=float, default=2.0, help="seconds of a block")
    parser.add_argument("--scratch", type=Path, help="folder for installing traceml-ai; without it, traceml is skipped")
    parser.add_argument("--work", choices=(OURS, TRACEML), help=argparse.SUPPRESS)
    return parser.parse_args()


def installed(scratch: Path) -> Path:
    """Returns the `bin` folder of an environment with traceml and this Python's packages (above all torch)."""
    environment = scratch / "traceml"
    if not (environment / "bin" / "traceml").exists():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        (packages,) = environment.glob("lib/python*/site-packages")
        here = [sysconfig.get_paths()["purelib"], str(Path(__file__).parent.parent.parent)]
        (packages / "parent.pth").write_text("\n".join(here))
        subprocess.run([str(environment / "bin" / "python"), "-m", "pip", "install", "-q", TRACEML], check=True)
    return environment / "bin"


def run(kind: str, step_ms: float, options: argparse.Namespace, rival: Path | None) -> dict[str, Any]:
    """Runs one training in a separate process."""
    words = ["--work", kind, "--ms", str(step_ms), "--pairs", str(options.pairs), "--block", str(options.block)]
    with tempfile.TemporaryDirectory() as folder:
        if kind == TRACEML and rival is not None:
            own = ["--logs-dir", folder, "--aggregator-port", str(free_port())]
            command = [str(rival / "traceml"), "run", *own, __file__, "--args", *words]
        else:
            command = [sys.executable, __file__, *words]
        done = subprocess.run(
            command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False
        )
    for line in done.stdout.splitlines():
        if RESULT in line:
            result: dict[str, Any] = json.loads(line.split(RESULT, 1)[1])
            return result
    raise NoResult(f"{kind} gave no result (exit status {done.returncode}):\n{done.stdout}\n{done.stderr}")


def free_port() -> int:
    """Returns a port that is not in use."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def merge(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Merges the runs of one monitor: all pairs, the median of other figures, and the sum of steps."""
    merged: dict[str, Any] = {name: [share for result in results for share in result[name]] for name in FIGURES}
    for name in ("step_ms", *(f"noise_{figure}" for figure in FIGURES)):
        merged[name] = median(result[name] for result in results)
    merged["steps"] = sum(result["steps"] for result in results)
    return merged


def show(kind: str, result: dict[str, Any]) -> None:
    """Prints one line of the table. Each figure is the median over the pairs, with the interquartile range."""
    columns = [spread(result[name]) for name in FIGURES]
    noise = ", ".join(f"±{100 * result['noise_' + name]:.2f} %" for name in ("quick", "thread"))
    figures = " ".join(f"{column:>25}" for column in columns)
    print(f"{result['step_ms']:>6.2f} ms {kind:>14} {figures} {noise:>18} {result['steps']:>7}", flush=True)


def spread(shares: list[float]) -> str:
    """Formats the median and the interquartile range, as `+0.31 % (0.2..0.5)`."""
    ranked = sorted(shares)
    low, high = ranked[len(ranked) // 4], ranked[-1 - len(ranked) // 4]
    return f"{100 * median(ranked):+.2f} % ({100 * low:+.2f}..{100 * high:+.2f})"


def train(kind: str, step_ms: float, pairs: int, block_s: float) -> dict[str, Any]:
    """Trains in blocks, every other one monitored. Returns the shares by which a monitored block's steps are longer."""
    training = Training(step_ms)
    blocks = []
    with tempfile.TemporaryDirectory() as folder:
        for index in range(2 * pairs + 1):
            with around_block(kind if index % 2 else "", folder) as each_step:
                training.steps(20, each_step)
                blocks.append(training.timed(block_s, each_step))
    result: dict[str, Any] = {"steps": sum(len(walls) for walls, _ in blocks), "step_ms": median(blocks[0][0]) / 1e6}
    for name, figure in FIGURES.items():
        values = [figure(block) for block in blocks]
        result[name] = [values[i] / fmean((values[i - 1], values[i + 1])) - 1 for i in range(1, len(values), 2)]
        off = values[::2]
        noise = [abs(off[i] / fmean((off[i - 1], off[i + 1])) - 1) for i in range(1, len(off) - 1)]
        result[f"noise_{name}"] = median(noise) if noise else float("nan")
    return result


def around_block(kind: str, folder: str) -> AbstractContextManager[Callable[[Any], AbstractContextManager[Any]]]:
    """Returns the context of a block, which yields a function for the context of each step."""
    if kind == OURS:
        return Ours(folder)
    if kind == TRACEML:
        import traceml_ai

        return nullcontext(traceml_ai.trace_step)
    return nullcontext(lambda _model: nullcontext())


class Ours:
    """The monitor with default settings, except that it records no traces."""

    def __init__(self, folder: str) -> None:
        from tb_bottleneck import Monitor

        self._monitor = Monitor(folder, captures=0)

    def __enter__(self) -> Callable[[Any], AbstractContextManager[Any]]:
        self._monitor.start()
        return lambda _model: nullcontext()

    def __exit__(self, *_: object) -> None:
        self._monitor.stop()


class Training:
    """An ordinary training loop on the CPU, with additional matmuls per step to reach the requested step length."""

    def __init__(self, step_ms: float) -> None:
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        torch.set_num_threads(1)
        self._torch = torch
        self._model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=1e-3)
        self._loader = DataLoader(TensorDataset(torch.randn(4000, 32), torch.randn(4000, 1)), batch_size=8)
        self._matrix = torch.randn(128, 128)
        self._batches = self._endless()
        self._products = 0
        bare = lambda _model: nullcontext()  # noqa: E731
        self.steps(50, bare)
        without = median(self.timed(1.0, bare)[0])
        self._products = 100
        one = (median(self.timed(1.0, bare)[0]) - without) / 100
        self._products = max(0, round((step_ms * 1e6 - without) / one))

    def steps(self, count: int, each: Callable[[Any], AbstractContextManager[Any]]) -> None:
        """Trains without timing."""
        for _ in range(count):
            self._step(each)

    def timed(self, seconds: float, each: Callable[[Any], AbstractContextManager[Any]]) -> tuple[list[int], list[int]]:
        """Returns wall time and this thread's CPU time of each step, in nanoseconds."""
        walls, threads = [], []
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            wall, thread = time.perf_counter_ns(), time.thread_time_ns()
            self._step(each)
            threads.append(time.thread_time_ns() - thread)
            walls.append(time.perf_counter_ns() - wall)
        return walls, threads

    def _endless(self) -> Iterator[Any]:
        while True:
            yield from self._loader

    def _step(self, each: Callable[[Any], AbstractContextManager[Any]]) -> None:
        batch, target = next(self._batches)
        with each(self._model):
            self._optimizer.zero_grad()
            loss = self._torch.nn.functional.mse_loss(self._model(batch), target)
            for _ in range(self._products):
                self._torch.mm(self._matrix, self._matrix)
            loss.backward()
            self._optimizer.step()


if __name__ == "__main__":
    main()
