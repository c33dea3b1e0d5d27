"""The training of the doctor: a small model under the monitor. The training itself measures the same figures as the
monitor, by other means.

    python doctor_training.py signals|overhead FOLDER

This file is copied to FOLDER and started there, like a program of the user, because traces have no lines of installed
packages. The result is FOLDER/measured.json, with times in nanoseconds and sizes in bytes. Nothing is printed.
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

RESULT, FAILURE, LOGDIR = "measured.json", "failure.txt", "runs"
WAIT_S = 0.01
"""The known time for making a batch, in s. The loader itself takes much less, about 0.1 ms."""
STEPS = 50
"""Number of steps. After 30 steps, the monitor traces at most 8 steps (monitor/capture/trace_capture.py)."""
IDLE_S, LOAD_S = 3.0, 8.0
"""On a GPU, seconds without work at the start, and seconds with work. The driver's counters are read once per second,
some every five seconds."""
ROUNDS, BLOCK_S, WARM_UP_S, MONITOR_WARM_UP_S = 5, 0.4, 0.05, 1.2
"""Number of rounds; seconds of a block; seconds of warm-up before a block without and with the monitor. In its first
second, a monitor opens files, collects facts and writes its first packet, which happens once per training."""
LINK_BYTES, COPIES = 1 << 28, 5


class Training:
    """One linear layer, batches that take WAIT_S to make, and matrix multiplications, which take most of a step.

    Attributes:
        ends: the end of each step, ns on the clock of `time.perf_counter_ns`.
        threads: the CPU time of this thread at the end of each step.
        waits: the time for making each batch, in ns.
        products: start (ns since 1970) and duration (ns) of the matrix multiplications of each step, on the host.
        allocated: bytes of `torch.cuda.memory_allocated` at the end of each step; empty on the CPU.
    """

    def __init__(self, torch: Any, device: Any, wait_s: float) -> None:
        from torch.utils.data import DataLoader

        self._torch, self._device, self._wait_s = torch, device, wait_s
        on_gpu = device.type == "cuda"
        samples, features = (2048, 1024) if on_gpu else (64, 256)
        count, side, self._times = (4, 2048, 8) if on_gpu else (4, 256, 2)
        self._batch = torch.randn(samples, features)
        self._left = torch.randn(count, side, side, device=device)
        self._out = torch.empty_like(self._left)
        self.model = torch.nn.Linear(features, 8).to(device)
        self._optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-6)
        self._loader: Any = DataLoader(cast(Any, self), batch_size=None)
        self.batch_bytes = self._batch.nbytes
        self.ends: list[int] = []
        self.threads: list[int] = []
        self.waits: list[int] = []
        self.products: list[tuple[int, int]] = []
        self.allocated: list[int] = []

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> Any:
        began = time.perf_counter_ns()
        time.sleep(self._wait_s)
        self.waits.append(time.perf_counter_ns() - began)
        return self._batch

    def steps(self) -> Iterator[int]:
        """Trains, and yields the number of finished steps after each step."""
        for batch in self._loader:
            moved = batch.to(self._device)
            began, at = time.perf_counter_ns(), time.time_ns()
            for _ in range(self._times):
                self._torch.bmm(self._left, self._left, out=self._out)
            self.products.append((at, time.perf_counter_ns() - began))
            self._optimizer.zero_grad()
            self.model(moved).square().mean().backward()
            self._optimizer.step()
            self.ends.append(time.perf_counter_ns())
            self.threads.append(time.thread_time_ns())
            if self._device.type == "cuda":
                self.allocated.append(self._torch.cuda.memory_allocated())
            yield len(self.ends)


def signals(torch: Any, device: Any, folder: Path) -> None:
    """Trains under the monitor, which records one trace."""
    from tb_bottleneck.monitor.monitor import Monitor

    on_gpu = device.type == "cuda"
    measured = _machine(torch, on_gpu)
    _write(folder, measured)
    training = Training(torch, device, WAIT_S)
    snapshots = int(on_gpu and not torch.version.hip)
    with Monitor(folder / LOGDIR, model=training.model, captures=1, every_s=1.0, memory_snapshots=snapshots):
        time.sleep(IDLE_S if on_gpu else 0.0)
        began, measured["load_began_ns"] = time.monotonic(), time.time_ns()
        for done in training.steps():
            if done >= STEPS and (not on_gpu or time.monotonic() - began > LOAD_S):
                break
        names = ("ends", "threads", "waits", "products", "allocated", "batch_bytes")
        measured |= {name: getattr(training, name) for name in names}
        if on_gpu:
            measured["allocated_peak"] = torch.cuda.max_memory_allocated()
        _write(folder, measured)
    if on_gpu:
        _write(folder, {**measured, "link_bytes_per_s": _link_rate(torch, device)})


def overhead(torch: Any, device: Any, folder: Path) -> None:
    """Trains in rounds of three blocks of steps: without, without and with the monitor. No traces are recorded.

    The figure of a block is the lower quartile of its step times, because other load on the machine affects it least
    (tests/bench/overhead.py)."""
    from tb_bottleneck.monitor.monitor import Monitor

    training = Training(torch, device, 0.0)
    each = training.steps()
    rounds: list[list[float]] = []
    for _ in range(ROUNDS):
        without = [_block(torch, each, WARM_UP_S), _block(torch, each, WARM_UP_S)]
        with Monitor(folder / "overhead", model=training.model, captures=0):
            rounds.append([*without, _block(torch, each, MONITOR_WARM_UP_S)])
    _write(folder, {"rounds": rounds})


def _block(torch: Any, each: Iterator[int], warm_up_s: float) -> float:
    """Runs a block of steps of `each` for BLOCK_S seconds after a warm-up of `warm_up_s` seconds. Returns the lower
    quartile of the step times in ns, without the warm-up. Waits for the device after each step, like a training that
    reads its loss in each step."""
    synchronize = torch.cuda.synchronize if torch.cuda.is_initialized() else lambda: None
    times: list[int] = []
    counted_from = time.monotonic() + warm_up_s
    while time.monotonic() < counted_from + BLOCK_S or not times:
        began = time.perf_counter_ns()
        next(each)
        synchronize()
        if time.monotonic() > counted_from:
            times.append(time.perf_counter_ns() - began)
    return float(sorted(times)[len(times) // 4])


def _machine(torch: Any, on_gpu: bool) -> dict[str, Any]:
    from tb_bottleneck.monitor.facts import device

    of = device.of_gpu(torch) if on_gpu else device.of_cpu(torch)
    facts = {"torch": str(torch.__version__), "cuda": torch.version.cuda, "rocm": torch.version.hip}
    facts |= {"device": of[0], "driver": of[1] if on_gpu else None, "on_gpu": on_gpu}
    facts["recordable"] = sorted(activity.name for activity in torch.profiler.supported_activities())
    if on_gpu:
        facts["device_memory"] = torch.cuda.mem_get_info()[1]
    return facts


def _link_rate(torch: Any, device: Any) -> float:
    """Returns the best rate of copies from pinned memory to the device, in bytes per second."""
    host = torch.empty(LINK_BYTES, dtype=torch.uint8, pin_memory=True)
    there = torch.empty(LINK_BYTES, dtype=torch.uint8, device=device)
    times = []
    for _ in range(COPIES):
        torch.cuda.synchronize()
        began = time.perf_counter()
        there.copy_(host, non_blocking=True)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return LINK_BYTES / min(times)


def _write(folder: Path, measured: Mapping[str, Any]) -> None:
    partial = folder / f"{RESULT}.part"
    partial.write_text(json.dumps(measured))
    os.replace(partial, folder / RESULT)


def main(name: str, folder: Path) -> int:
    """Runs the training `name`, and returns the exit status. After an error, writes only the type of the error to
    FAILURE, because its message may contain paths."""
    try:
        import torch

        torch.set_num_threads(1)  # so that the thread's CPU time is that of the step, and cores remain for the monitor
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if device.type == "cuda":
            torch.zeros(1, device=device)  # initialises it, before the monitor looks for its GPU
        {"signals": signals, "overhead": overhead}[name](torch, device, folder)
    except Exception as error:
        (folder / FAILURE).write_text(type(error).__name__)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
