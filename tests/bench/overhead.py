"""What the monitor costs: step times with and without it, on steps of 1, 10 and 100 ms, beside `traceml-ai`.

    python tests/bench/overhead.py --scratch FOLDER

One process trains in blocks that are monitored and not, in turn, so that what else the machine does falls on both
alike. A step's time is the lower quartile of its block's, and the mean beside it. A block that is monitored is compared
with the blocks before and after it; the same comparison of blocks that are not monitored tells the noise. Figures are
medians over all blocks of all rounds; in a round each monitor has its turn at each length of a step. traceml runs as
`traceml run` does it, in a process of its own, with `trace_step` in every other block: what its own threads and
processes cost falls on both sides there, so its figure is a lower bound, while ours begins and ends with each block and
holds everything. Traces are not recorded here. The machine's load while it ran is told below the table.
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
    """A training that ended without its figures; str() is for the user."""


def lower_quartile(times: list[int]) -> float:
    """A step as it is where nobody else wants the core: the machine's other work reaches it least."""
    return quantiles(times, n=4)[0]


# Of a block: wall times of its steps, and processor time of the training's thread in each.
FIGURES: dict[str, Callable[[tuple[list[int], list[int]]], float]] = {
    "quick": lambda block: lower_quartile(block[0]),
    "mean": lambda block: fmean(block[0]),
    "thread": lambda block: lower_quartile(block[1]),
}


def main() -> None:
    """Runs the bench, or (`--work`) one training of it."""
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
        for (step_ms, kind), told in runs.items():
            print(f"round {number + 1} of {options.rounds}: {kind}, {step_ms:g} ms", file=sys.stderr, flush=True)
            try:
                told.append(run(kind, step_ms, options, rival))
            except NoResult as failure:
                print(failure, file=sys.stderr)
            loads.append(os.getloadavg()[0])
    for (step_ms, kind), told in runs.items():
        if told:
            show(kind, together(told))
        else:
            print(f"{step_ms:>6.2f} ms {kind:>14} gave no result in any round", flush=True)
    print(f"load of the machine: {min(loads):.1f} to {max(loads):.1f}, {os.cpu_count()} cores", flush=True)


def arguments() -> argparse.Namespace:
    """The command line's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ms", type=float, nargs="+", default=[1, 10, 100], help="lengths of a step")
    parser.add_argument("--rounds", type=int, default=3, help="times that each monitor has its turn")
    parser.add_argument("--pairs", type=int, default=5, help="monitored blocks of a turn; one more is not monitored")
    parser.add_argument("--block", type=float, default=2.0, help="seconds of a block")
    parser.add_argument("--scratch", type=Path, help="a folder to install traceml-ai in; without it, it is left out")
    parser.add_argument("--work", choices=(OURS, TRACEML), help=argparse.SUPPRESS)
    return parser.parse_args()


def installed(scratch: Path) -> Path:
    """An environment's `bin` with traceml in it, and in reach what this Python has, torch above all."""
    environment = scratch / "traceml"
    if not (environment / "bin" / "traceml").exists():
        subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
        (packages,) = environment.glob("lib/python*/site-packages")
        here = [sysconfig.get_paths()["purelib"], str(Path(__file__).parent.parent.parent)]
        (packages / "parent.pth").write_text("\n".join(here))
        subprocess.run([str(environment / "bin" / "python"), "-m", "pip", "install", "-q", TRACEML], check=True)
    return environment / "bin"


def run(kind: str, step_ms: float, options: argparse.Namespace, rival: Path | None) -> dict[str, Any]:
    """One training in a process of its own."""
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
            told: dict[str, Any] = json.loads(line.split(RESULT, 1)[1])
            return told
    raise NoResult(f"{kind} gave no result (exit status {done.returncode}):\n{done.stdout}\n{done.stderr}")


def free_port() -> int:
    """One that nobody listens on right now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def together(told: list[dict[str, Any]]) -> dict[str, Any]:
    """The turns of one monitor as one: pairs put together, of other figures the median, steps in sum."""
    found: dict[str, Any] = {name: [share for one in told for share in one[name]] for name in FIGURES}
    for name in ("step_ms", *(f"noise_{figure}" for figure in FIGURES)):
        found[name] = median(one[name] for one in told)
    found["steps"] = sum(one["steps"] for one in told)
    return found


def show(kind: str, told: dict[str, Any]) -> None:
    """One line of the table. Each figure is the median over the pairs, with the range of the middle half."""
    columns = [spread(told[name]) for name in FIGURES]
    noise = ", ".join(f"±{100 * told['noise_' + name]:.2f} %" for name in ("quick", "thread"))
    figures = " ".join(f"{column:>25}" for column in columns)
    print(f"{told['step_ms']:>6.2f} ms {kind:>14} {figures} {noise:>18} {told['steps']:>7}", flush=True)


def spread(shares: list[float]) -> str:
    """Such as `+0.31 % (0.2..0.5)`."""
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
    told: dict[str, Any] = {"steps": sum(len(walls) for walls, _ in blocks), "step_ms": median(blocks[0][0]) / 1e6}
    for name, figure in FIGURES.items():
        values = [figure(block) for block in blocks]
        told[name] = [values[i] / fmean((values[i - 1], values[i + 1])) - 1 for i in range(1, len(values), 2)]
        off = values[::2]
        noise = [abs(off[i] / fmean((off[i - 1], off[i + 1])) - 1) for i in range(1, len(off) - 1)]
        told[f"noise_{name}"] = median(noise) if noise else float("nan")
    return told


def around_block(kind: str, folder: str) -> AbstractContextManager[Callable[[Any], AbstractContextManager[Any]]]:
    """What a block runs in; it gives what each of its steps runs in."""
    if kind == OURS:
        return Ours(folder)
    if kind == TRACEML:
        import traceml_ai

        return nullcontext(traceml_ai.trace_step)
    return nullcontext(lambda _model: nullcontext())


class Ours:
    """The monitor as a user has it, but for traces."""

    def __init__(self, folder: str) -> None:
        from tb_bottleneck import Monitor

        self._monitor = Monitor(folder, captures=0)

    def __enter__(self) -> Callable[[Any], AbstractContextManager[Any]]:
        self._monitor.start()
        return lambda _model: nullcontext()

    def __exit__(self, *_: object) -> None:
        self._monitor.stop()


class Training:
    """An ordinary loop on the CPU; a step is filled up with matrix products to the length that is asked for."""

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
        """Trains untimed."""
        for _ in range(count):
            self._step(each)

    def timed(self, seconds: float, each: Callable[[Any], AbstractContextManager[Any]]) -> tuple[list[int], list[int]]:
        """Wall time and this thread's processor time of each step, in nanoseconds."""
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
