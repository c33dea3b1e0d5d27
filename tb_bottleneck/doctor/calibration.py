"""Measures the real rates of a device: matmuls by type, copies, and the cost of a launch. Takes about two seconds.

Each figure is the best of several rounds after a warm-up, because disturbances can only lower a peak rate. The device
should be idle otherwise: another training run would lower the figures.

`python -m tb_bottleneck.doctor.calibration FILE` measures in a process of its own, and writes the Calibration as JSON.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tb_bottleneck.base.errors import NotFound
from tb_bottleneck.monitor.facts import device as device_facts

SECONDS_EACH = 0.2
"""Time for one figure in seconds, without warm-up."""
ROUNDS = 5
# Less than the capacity of CUDA's launch queue (1024), beyond which the host waits.
LAUNCHES = 500
# Too large for the cache of any GPU, and of most CPUs.
GPU_COPY_BYTES, CPU_COPY_BYTES, LINK_BYTES = 1 << 30, 1 << 28, 1 << 28
GPU_SIDE, CPU_SIDE = 8192, 2048
_PART_OF_FREE = 4  # buffers may use a quarter of the free memory


@dataclass
class Calibration:
    """The measured rates of a device: `figures` by name (NAMES in base/calibration_store.py has names and units).

    `driver` is the version of the driver or library. `left_out` has the reason for each missing figure, by name."""

    device: str
    driver: str
    figures: dict[str, float] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


class BenchmarkDevice:
    """A device to measure. `synchronize` waits until the device has finished all work."""

    def __init__(
        self,
        torch: Any,
        device: Any,
        synchronize: Callable[[], None],
        seconds: float,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.torch = torch
        self.device = device
        self.synchronize = synchronize
        self._seconds = seconds
        self._clock = clock

    def seconds_of(self, run: Callable[[], object]) -> float:
        """Returns the seconds per call of `run`, in the fastest of ROUNDS rounds. A round has many calls."""
        for _ in range(2):  # the first run creates plans and raises the clocks
            run()
        self.synchronize()
        once = self.round(run, 1)
        runs = max(1, int(self._seconds / ROUNDS / once))
        return min(self.round(run, runs) for _ in range(ROUNDS)) / runs

    def host_seconds_of(self, run: Callable[[], object], times: int) -> float:
        """Returns the host's seconds per call of `run`, in the fastest of ROUNDS rounds of `times` calls.

        The host does not wait for the device within a round."""
        self.round(run, times)
        best = float("inf")
        for _ in range(ROUNDS):
            began = self._clock()
            for _ in range(times):
                run()
            best = min(best, (self._clock() - began) / 1e9)
            self.synchronize()
        return best / times

    def round(self, run: Callable[[], object], runs: int) -> float:
        """Returns the seconds of `runs` calls of `run`."""
        began = self._clock()
        for _ in range(runs):
            run()
        self.synchronize()
        return max((self._clock() - began) / 1e9, 1e-9)


def calibrate(device: str | None = None) -> Calibration:
    """Measures `device`, as torch names it; by default the current GPU, or the CPU without a GPU.

    Raises NotFound if torch or the device is missing.
    """
    torch = _torch()
    try:
        target = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError as error:
        raise NotFound(f"torch has no device {device!r}; use a name such as cuda, cuda:1 or cpu") from error
    if target.type == "cpu":
        return _measure(BenchmarkDevice(torch, target, lambda: None, SECONDS_EACH), device_facts.of_cpu(torch), ON_CPU)
    if target.type != "cuda" or not torch.cuda.is_available() or (target.index or 0) >= torch.cuda.device_count():
        raise NotFound(f"torch has no device {device!r} that can be measured here; it sees {_visible_devices(torch)}")
    if target.index is None:
        target = torch.device("cuda", torch.cuda.current_device())
    with torch.cuda.device(target):
        torch.zeros(1, device=target)  # initialises it
        benchmark = BenchmarkDevice(torch, target, torch.cuda.synchronize, SECONDS_EACH)
        return _measure(benchmark, device_facts.of_gpu(torch, target.index), ON_GPU)


Figure = Callable[[BenchmarkDevice], float]


class _NotAvailable(Exception):
    """Raised if a figure cannot be measured on this device; str() is the reason."""


def _measure(benchmark: BenchmarkDevice, device: tuple[str, str], figures: Mapping[str, Figure]) -> Calibration:
    measured = Calibration(*device)
    for name, figure in figures.items():
        try:
            measured.figures[name] = figure(benchmark)
        except (_NotAvailable, RuntimeError) as error:  # torch raises RuntimeError for unsupported types and sizes
            measured.left_out[name] = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
    return measured


def _product(dtype: str, tf32: bool = False) -> Figure:
    """Returns a function that measures matrix multiplications of the type `dtype`, in operations per second. With
    `tf32`, torch may use TF32.

    A product of two square matrices of side n has 2 n³ operations."""

    def figure(benchmark: BenchmarkDevice) -> float:
        torch = benchmark.torch
        if tf32 and (torch.version.hip or torch.cuda.get_device_capability(benchmark.device) < (8, 0)):
            raise _NotAvailable("this device has no TF32: it needs compute capability 8.0")
        kind = getattr(torch, dtype)
        side = _side(benchmark, kind.itemsize)
        left, right = (torch.rand(side, side, device=benchmark.device, dtype=torch.float32).to(kind) for _ in range(2))
        out = torch.empty_like(left)
        before = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("high" if tf32 else "highest")
        try:
            return 2 * side**3 / benchmark.seconds_of(lambda: torch.mm(left, right, out=out))
        finally:
            torch.set_float32_matmul_precision(before)

    return figure


def _copy(benchmark: BenchmarkDevice) -> float:
    """Returns the rate of a copy in bytes per second. Bytes read and bytes written both count, because both use the
    memory bus."""
    on_gpu = benchmark.device.type == "cuda"
    count = min(GPU_COPY_BYTES, _free_bytes(benchmark) // _PART_OF_FREE) if on_gpu else CPU_COPY_BYTES
    source = benchmark.torch.ones(count, device=benchmark.device, dtype=benchmark.torch.uint8)
    target = benchmark.torch.empty_like(source)
    return 2 * count / benchmark.seconds_of(lambda: target.copy_(source))


def _link(pinned: bool, to_device: bool) -> Figure:
    def figure(benchmark: BenchmarkDevice) -> float:
        torch = benchmark.torch
        host = torch.ones(LINK_BYTES, dtype=torch.uint8, pin_memory=pinned)
        there = torch.ones(LINK_BYTES, dtype=torch.uint8, device=benchmark.device)
        source, target = (host, there) if to_device else (there, host)
        return LINK_BYTES / benchmark.seconds_of(lambda: target.copy_(source, non_blocking=pinned))

    return figure


def _launch(benchmark: BenchmarkDevice) -> float:
    """Returns the host time in ns for one in-place addition of a single number, including torch's dispatch."""
    number = benchmark.torch.zeros(1, device=benchmark.device)
    return benchmark.host_seconds_of(lambda: number.add_(1), LAUNCHES) * 1e9


def _side(benchmark: BenchmarkDevice, itemsize: int) -> int:
    if benchmark.device.type == "cpu":
        return CPU_SIDE
    side = GPU_SIDE
    while 3 * side * side * max(itemsize, 4) > _free_bytes(benchmark) // _PART_OF_FREE:
        side //= 2
    return side


def _free_bytes(benchmark: BenchmarkDevice) -> int:
    return int(benchmark.torch.cuda.mem_get_info(benchmark.device)[0])


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise NotFound("torch is not installed in this Python: install it, then run the doctor again") from error
    return torch


def _visible_devices(torch: Any) -> str:
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return "cpu" if not count else f"cpu and cuda:0 to cuda:{count - 1}"


ON_CPU: dict[str, Figure] = {"fp32_flops": _product("float32"), "copy_bytes_per_s": _copy}
ON_GPU: dict[str, Figure] = {
    "bf16_flops": _product("bfloat16"),
    "fp16_flops": _product("float16"),
    "tf32_flops": _product("float32", tf32=True),
    "fp32_flops": _product("float32"),
    "copy_bytes_per_s": _copy,
    "h2d_pinned_bytes_per_s": _link(pinned=True, to_device=True),
    "h2d_pageable_bytes_per_s": _link(pinned=False, to_device=True),
    "d2h_pinned_bytes_per_s": _link(pinned=True, to_device=False),
    "launch_ns": _launch,
}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(asdict(calibrate())))
