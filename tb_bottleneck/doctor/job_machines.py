"""Code or machine? Each rank of a job measures its device, its core, its memory and its links for a few seconds, and
the figures of all ranks are compared: a rank that is slower at the same work has a slower machine.

`torchrun ... -m tb_bottleneck doctor --job` runs it, with the processes and the devices of the job.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tb_bottleneck.base.errors import NotFound, Unusable
from tb_bottleneck.base.units import ranks_text, share_text
from tb_bottleneck.doctor.calibration import BenchmarkDevice

SECONDS = 4.0
"""Time of all measurements on a rank."""
ROUNDS, MESSAGES = 5, 12
"""Rounds of a figure, of a tenth of a second each, as the periods of a CPU quota (Linux documentation, cgroup-v2,
cpu.max), and messages to a neighbour. The second fastest round and the fourth fastest message count: other programs
disturb some, and a slow machine is slow in all."""
TIMEOUT = timedelta(seconds=60)
COPY_BYTES, MESSAGE_BYTES = 1 << 26, 1 << 22
GPU_SIDE, CPU_SIDE, LOOP = 4096, 384, 20_000

Figures = dict[str, float]
"""Figures of one rank: speeds, in units per second. `core_cpu` is the speed of the core while the rank runs on it;
`link` is that of messages from the rank before."""

NAMES = {
    "product": "its device multiplies matrices",
    "device_copy": "the memory of its device copies",
    "to_device": "copies to its device are",
    "host_memory": "the memory of its host copies",
    "core": "its process runs",
    "link": "messages from the rank before it are",
}
SLOWER = {"product": 0.08, "device_copy": 0.08, "to_device": 0.25, "host_memory": 0.25, "core": 0.2, "link": 0.4}
"""A figure is slow if it is lower than that of most ranks by this share. Equal GPUs differ by about 2 % at the same
work; cores, memory and links of one host, which ranks share, by more. Choices."""
OF_GPUS = ("product", "device_copy")
ON_CPU = 0.25  # the limit of OF_GPUS, if the devices are cores
MOST, FARTHER = 0.7, 2.5
"""A slow figure also differs from the usual one by FARTHER times as much as those of the part MOST of the ranks do.
Choices."""


@dataclass(frozen=True)
class SlowMachine:
    """A figure of a rank that is slower than on the others by the share `slower`."""

    rank: int
    figure: str
    slower: float
    waits: bool

    @property
    def sentence(self) -> str:
        """A sentence that names the rank, the figure and the difference."""
        why = ""
        if self.figure == "core":
            why = (
                ": other programs use its cores, or a quota holds it back"
                if self.waits
                else ": the clock of its core is lower"
            )
        return f"Rank {self.rank}: {NAMES[self.figure]} {share_text(self.slower)} slower than on the other ranks{why}."


def slow_machines(figures: Sequence[Figures], on_cpu: bool) -> list[SlowMachine]:
    """Returns what is slower on single ranks, the largest difference first. `figures` has the figures of each rank."""
    found = []
    for name, limit in SLOWER.items():
        values = [each[name] for each in figures if each.get(name, 0.0) > 0]
        if len(values) < 2:
            continue
        usual = statistics.median_high(values)
        spread = sorted(abs(value / usual - 1) for value in values)[int(MOST * (len(values) - 1))]
        least = max(ON_CPU if on_cpu and name in OF_GPUS else limit, FARTHER * spread)
        for rank, each in enumerate(figures):
            slower = 1 - each.get(name, usual) / usual
            if slower >= least:
                found.append(SlowMachine(rank, name, slower, _waits(name, rank, figures)))
    # A core that is busy or slow makes all other figures of its rank slower, too.
    cores = {each.rank for each in found if each.figure == "core"} if on_cpu else set()
    kept = [each for each in found if each.rank not in cores or each.figure == "core"]
    return sorted(kept, key=lambda each: -each.slower)


def _waits(name: str, rank: int, figures: Sequence[Figures]) -> bool:
    """Returns True if `rank` is slow although its core is not: its process does not run all the time."""
    speeds = [each["core_cpu"] for each in figures if "core_cpu" in each]
    return name == "core" and bool(speeds) and figures[rank]["core_cpu"] > (1 - ON_CPU) * statistics.median_high(speeds)


def verdict_text(found: Sequence[SlowMachine], ranks: int) -> str:
    """Returns the verdict about a job of `ranks` ranks."""
    if not found:
        return f"The machines of all {ranks} ranks are equally fast: if a rank is slow in the job, look at the code."
    slow = ranks_text(sorted({each.rank for each in found}))
    return f"The machine of {slow} is slower at the same work: look at the machine, not at the code."


_UNITS = {
    "product": (1e12, "TFLOP/s"),
    "device_copy": (1e9, "GB/s"),
    "to_device": (1e9, "GB/s"),
    "host_memory": (1e9, "GB/s"),
    "core": (1e6, "M/s"),
    "core_cpu": (1e6, "M/s"),
    "all_reduce": (1e9, "GB/s"),
    "link": (1e9, "GB/s"),
}


def figure_table(figures: Sequence[Figures]) -> Iterator[str]:
    """Yields a header, the units, and one line per rank with its figures."""
    width = {name: max(len(name), 7) for name in _UNITS if any(name in each for each in figures)}
    yield "rank  " + "  ".join(f"{name:>{room}}" for name, room in width.items())
    yield "      " + "  ".join(f"{_UNITS[name][1]:>{room}}" for name, room in width.items())
    for rank, each in enumerate(figures):
        values = {name: f"{each[name] / _UNITS[name][0]:.3g}" for name in width if name in each}
        yield f"{rank:>4}  " + "  ".join(f"{values.get(name, '-'):>{room}}" for name, room in width.items())


def measured_figures(seconds: float = SECONDS) -> list[Figures]:
    """Measures in the ranks of this job, and returns the figures of all of them, on each rank. Every rank has to call
    it.

    Raises:
        NotFound: torch is not installed.
        Unusable: this process is no rank of a job, or the ranks do not find each other.
    """
    try:
        import torch
        import torch.distributed as dist
    except ImportError:
        raise NotFound("torch is not installed for this Python") from None
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        raise Unusable(
            "doctor --job runs in every rank of a job: start it as the job is started, "
            "torchrun --nproc-per-node=4 -m tb_bottleneck doctor --job"
        )
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    with _group(dist, "nccl" if on_gpu else "gloo"):
        figures = _measure(torch, dist, on_gpu, seconds / 7)
        together: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(together, figures)
        return together


@contextmanager
def _group(dist: Any, backend: str) -> Iterator[None]:
    try:
        dist.init_process_group(backend, timeout=TIMEOUT)
    except (RuntimeError, ValueError) as error:
        raise Unusable(f"the ranks of the job do not find each other: {error}") from error
    try:
        yield
    finally:
        dist.destroy_process_group()


def _measure(torch: Any, dist: Any, on_gpu: bool, seconds: float) -> Figures:
    device = torch.device("cuda" if on_gpu else "cpu")
    side = GPU_SIDE if on_gpu else CPU_SIDE
    torch.set_num_threads(1)
    wait = torch.cuda.synchronize if on_gpu else (lambda: None)
    matrix = torch.randn(side, side, device=device, dtype=torch.bfloat16 if on_gpu else torch.float32)
    host = torch.zeros(COPY_BYTES, dtype=torch.uint8)
    target = torch.zeros_like(host)
    found = {"product": 2 * side**3 / _seconds_of(lambda: torch.mm(matrix, matrix), wait, seconds, dist)}
    if on_gpu:
        inside, pinned = host.to(device), host.pin_memory()
        copy = torch.zeros_like(inside)
        found["device_copy"] = COPY_BYTES / _seconds_of(lambda: copy.copy_(inside), wait, seconds, dist)
        found["to_device"] = COPY_BYTES / _seconds_of(
            lambda: inside.copy_(pinned, non_blocking=True), wait, seconds, dist
        )
    found["host_memory"] = COPY_BYTES / _seconds_of(lambda: target.copy_(host), lambda: None, seconds, dist)
    found["core"] = LOOP / _seconds_of(_count, lambda: None, seconds, dist)
    found["core_cpu"] = LOOP / min(_cpu_seconds() for _ in range(ROUNDS))
    message = torch.zeros(MESSAGE_BYTES, dtype=torch.uint8, device=device)
    found["all_reduce"] = MESSAGE_BYTES / _seconds_of(lambda: dist.all_reduce(message), wait, seconds, dist)
    found["link"] = MESSAGE_BYTES / _ring(dist, message, wait)
    return found


def _cpu_seconds() -> float:
    began = time.thread_time()
    _count()
    return max(time.thread_time() - began, 1e-9)


def _count() -> int:
    total = 0
    for number in range(LOOP):
        total += number
    return total


def _seconds_of(run: Callable[[], object], wait: Callable[[], None], seconds: float, dist: Any) -> float:
    """Returns the seconds per call of `run`, from ROUNDS rounds. All ranks make as many calls as rank 0 has time
    for."""
    benchmark = BenchmarkDevice(None, None, wait, seconds)
    benchmark.round(run, 2)
    calls: list[Any] = [max(int(seconds / ROUNDS / benchmark.round(run, 1)), 1)]
    dist.broadcast_object_list(calls)
    return float(sorted(benchmark.round(run, calls[0]) for _ in range(ROUNDS))[1] / calls[0])


def _ring(dist: Any, message: Any, wait: Callable[[], None]) -> float:
    """Returns the seconds for a message from the rank before. First the even ranks send, then the odd ones, so that no
    rank sends and receives at the same time."""
    rank, size = dist.get_rank(), dist.get_world_size()
    if size < 2:
        return float("inf")
    times = []
    for message_number in range(MESSAGES):
        for turn in range(2 + size % 2):
            senders = [each for each in range(size) if _turn_of(each, size) == turn]
            dist.barrier()
            if rank in senders:
                dist.send(message, (rank + 1) % size)
                wait()
            elif (rank - 1) % size in senders:
                began = time.perf_counter()
                dist.recv(message, (rank - 1) % size)
                wait()
                times += [time.perf_counter() - began] if message_number > 1 else []
    return float(sorted(times)[3])


def _turn_of(rank: int, size: int) -> int:
    """Returns the turn in which `rank` sends. In a ring of odd size, the last rank has a turn of its own."""
    return 2 if size % 2 and rank == size - 1 else rank % 2
