"""Measures the machine of this process: its device, its core, its memory and, in a job, its links to other ranks.

The figures of all ranks of a job are compared (jobs/machines.py): a rank that is slower at the same work has a slower
machine. All ranks of a job have to measure together, or none does: a rank that is alone would wait for the others, and
its messages could meet those of the training. Therefore, the ranks first agree over the store of torch's process group,
and then use a process group of their own.
"""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from tb_bottleneck.base.errors import NotFound, Unusable
from tb_bottleneck.monitor.facts.cpu import usable_cores
from tb_bottleneck.monitor.torch_internals import job_store

SECONDS = 3.0
"""Time of all measurements on a rank."""
FIRST_STEP = 2
"""The step after which a job measures at its start: modules are loaded, and all ranks are there."""
AGREE_SECONDS, GROUP_TIMEOUT = 10.0, timedelta(seconds=60)
"""Longest time to wait for other ranks: to agree, and in a measurement."""
PASSES, ROUNDS, MESSAGES = 2, 3, 8
"""Passes over all figures, of which the faster one counts, rounds of a figure in a pass, and messages to a neighbour. A
round takes most of a period of a CPU quota, 0.1 s (Linux documentation, cgroup-v2, cpu.max). The second fastest round
and the third fastest message count: other programs disturb some, and a slow machine is slow in all."""
COPY_BYTES, MESSAGE_BYTES = 1 << 26, 1 << 22
GPU_SIDE, CPU_SIDE, LOOP = 4096, 384, 20_000

Figures = dict[str, float]
"""Figures of one rank: speeds, in units per second. `core_cpu` is the speed of the core while the rank runs on it;
`link` is that of messages from the rank before."""


class MachineCheck:
    """Measures the machine after step FIRST_STEP of a job if `at_start` is True, and on request. `figures` are the
    newest ones."""

    def __init__(self, at_start: bool) -> None:
        self.figures: Figures = {}
        self._at_step = FIRST_STEP if at_start else None

    def request(self, at_step: int) -> None:
        """Requests a measurement after the step `at_step`. The ranks of a job need the same number. Any thread may call
        this."""
        self._at_step = at_step

    def is_due(self, steps: int) -> bool:
        """Returns True if a measurement is requested for the step with the number `steps`, or for an earlier one."""
        return self._at_step is not None and steps >= self._at_step

    def run(self) -> None:
        """Measures now: with the other ranks if they agree, otherwise only what needs no other rank. Takes about
        SECONDS, and up to AGREE_SECONDS to agree. Called on the training thread."""
        from torch import distributed

        at_step, self._at_step = self._at_step, None
        in_job = distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1
        if not in_job or not _agreed(distributed, f"tb_bottleneck/machine/{at_step}"):
            self.figures = measured()
            return
        group = distributed.new_group(timeout=GROUP_TIMEOUT)
        try:
            self.figures = measured(distributed, group)
        finally:
            distributed.destroy_process_group(group)


def _agreed(distributed: Any, key: str) -> bool:
    """Returns True if all ranks call this with the same `key` within AGREE_SECONDS; the same value on all ranks that
    call it. The first decision counts: that of the last rank that arrives, or of a rank that has waited too long."""
    store = job_store()
    decision, until = f"{key}/decision", time.monotonic() + AGREE_SECONDS
    if store.add(f"{key}/arrived", 1) == distributed.get_world_size():
        store.compare_set(decision, "", "yes")
    while not store.check([decision]):
        if time.monotonic() > until:
            store.compare_set(decision, "", "no")
        time.sleep(0.01)
    return bool(store.get(decision) == b"yes")


def job_figures(seconds: float = SECONDS) -> list[Figures]:
    """Measures in the ranks of a job without a training, and returns the figures of all of them, on each rank. Every
    rank has to call it.

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
    with _default_group(dist, "nccl" if on_gpu else "gloo"):
        together: list[Any] = [None] * dist.get_world_size()
        dist.all_gather_object(together, measured(dist, None, seconds))
        return together


@contextmanager
def _default_group(dist: Any, backend: str) -> Iterator[None]:
    try:
        dist.init_process_group(backend, timeout=GROUP_TIMEOUT)
    except (RuntimeError, ValueError) as error:
        raise Unusable(f"the ranks of the job do not find each other: {error}") from error
    try:
        yield
    finally:
        dist.destroy_process_group()


def measured(dist: Any = None, group: Any = None, seconds: float = SECONDS) -> Figures:
    """Returns the figures of this process. With `dist` (torch.distributed), all ranks of `group` measure together, and
    the figures include the links. Random numbers and the number of threads of the training stay as they are."""
    import torch

    on_gpu, threads = torch.cuda.is_available(), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            passes = [_measure(torch, dist, group, on_gpu, seconds / PASSES / 7) for _ in range(PASSES)]
            return {name: max(each[name] for each in passes) for name in passes[0]}
    finally:
        torch.set_num_threads(threads)


def _measure(torch: Any, dist: Any, group: Any, on_gpu: bool, seconds: float) -> Figures:
    device, side = ("cuda", GPU_SIDE) if on_gpu else ("cpu", CPU_SIDE)
    wait = torch.cuda.synchronize if on_gpu else _nothing
    turns = _turns(dist, group) if dist is not None else [0]
    rank = dist.get_rank() if dist is not None else 0

    numbers = torch.arange(side * side, device=device).remainder(251).reshape(side, side)
    matrix = numbers.to(torch.bfloat16 if on_gpu else torch.float32)
    host = torch.zeros(COPY_BYTES, dtype=torch.uint8, device="cpu")
    target = torch.zeros_like(host)
    found: Figures = {}

    def measure(name: str, amount: float, run: Callable[[], object], wait: Callable[[], None] = wait) -> None:
        found[name] = amount / _seconds_of(run, wait, seconds)

    def measure_core() -> None:
        measure("host_memory", COPY_BYTES, lambda: target.copy_(host), _nothing)
        measure("core", LOOP, _count, _nothing)
        found["core_cpu"] = LOOP / min(_cpu_seconds() for _ in range(ROUNDS))
        if not on_gpu:
            measure("product", 2 * side**3, lambda: torch.mm(matrix, matrix))

    if on_gpu:
        inside, pinned = torch.zeros(COPY_BYTES, dtype=torch.uint8, device=device), host.pin_memory()
        copy = torch.zeros_like(inside)
        measure("product", 2 * side**3, lambda: torch.mm(matrix, matrix))
        measure("device_copy", COPY_BYTES, lambda: copy.copy_(inside))
        measure("to_device", COPY_BYTES, lambda: inside.copy_(pinned, non_blocking=True))
    for turn in range(max(turns) + 1):
        if dist is not None:
            dist.barrier(group)
        if turns[rank] == turn:
            measure_core()
    if dist is not None:
        message = torch.zeros(MESSAGE_BYTES, dtype=torch.uint8, device=device)
        reduce_seconds = _seconds_of(lambda: dist.all_reduce(message, group=group), wait, seconds, dist, group)
        found["all_reduce"] = MESSAGE_BYTES / reduce_seconds
        found["link"] = MESSAGE_BYTES / _ring(dist, group, message, wait, turns)
    return found


def _turns(dist: Any, group: Any) -> list[int]:
    """Returns the turn of each rank. Ranks that may use the same cores of a host measure one after another if they are
    more than these cores less one: otherwise they would measure each other."""
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0}
    machines: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(machines, (socket.gethostname(), cores, usable_cores()), group=group)
    turns = []
    for rank, (host, cores, usable) in enumerate(machines):
        before = [each for each in range(rank) if machines[each][0] == host and machines[each][1] & cores]
        turns.append(len(before) // max(int(usable) - 1, 1))
    return turns


def _nothing() -> None: ...


def _cpu_seconds() -> float:
    began = time.thread_time()
    _count()
    return max(time.thread_time() - began, 1e-9)


def _count() -> int:
    total = 0
    for number in range(LOOP):
        total += number
    return total


def _seconds_of(
    run: Callable[[], object], wait: Callable[[], None], seconds: float, dist: Any = None, group: Any = None
) -> float:
    """Returns the seconds per call of `run`, from ROUNDS rounds. With `dist`, all ranks make as many calls as rank 0
    has time for."""
    calls: list[Any] = [max(int(seconds / ROUNDS / min(_round(run, wait, 1) for _ in range(ROUNDS))), 1)]
    if dist is not None:
        dist.broadcast_object_list(calls, group=group)
    return float(sorted(_round(run, wait, calls[0]) for _ in range(ROUNDS))[1] / calls[0])


def _round(run: Callable[[], object], wait: Callable[[], None], calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        run()
    wait()
    return max(time.perf_counter() - began, 1e-9)


def _ring(dist: Any, group: Any, message: Any, wait: Callable[[], None], turns: list[int]) -> float:
    """Returns the seconds for a message from the rank before. The ranks of one of `turns` send at the same time: first
    the even ones, then the odd ones, so that no rank sends and receives at the same time."""
    rank, size = dist.get_rank(), dist.get_world_size()
    if size < 2:
        return float("inf")
    rounds = [(turns[each], 2 if size % 2 and each == size - 1 else each % 2) for each in range(size)]
    times = []
    for message_number in range(MESSAGES):
        for each in sorted(set(rounds)):
            dist.barrier(group)
            if rounds[rank] == each:
                dist.send(message, (rank + 1) % size, group)
                wait()
            elif rounds[rank - 1] == each:
                began = time.perf_counter()
                dist.recv(message, (rank - 1) % size, group)
                wait()
                times += [time.perf_counter() - began] if message_number > 1 else []
    return float(sorted(times)[2])
