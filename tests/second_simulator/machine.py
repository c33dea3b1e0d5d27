"""Model of one training process: its main thread, its autograd thread, and the streams of a device."""

import random
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from math import exp
from typing import Any

from second_simulator.kernels import Device, Kernel

MAIN, AUTOGRAD, BACKGROUND = 4100, 4177, 4190
"""Ids of the host threads. The main thread has the id of the process."""

STREAM, COPY_STREAM, SIDE_STREAM, NCCL_STREAM = 7, 13, 17, 40

QUEUE_DEPTH = 1024
"""Launches that a stream holds before the next launch call blocks; as devices show, not documented."""

START_US, SEPARATION_US = 2.5, 0.8
"""Latency from a launch call to the start on an idle device, and the pause between two kernels of one stream."""

STAGED_BYTES = 65536
"""A copy from pageable memory of up to 64 KB returns once it is staged (CUDA, "API synchronization behavior")."""


@dataclass(frozen=True)
class Row:
    """One event of the recording; times in microseconds."""

    category: str
    name: str
    tid: int
    start: float
    end: float
    args: dict[str, Any] = field(default_factory=dict)


class Machine:
    """A clock that a program advances. `removed` names the components that cost nothing while recording."""

    def __init__(self, seed: int, device: Device, removed: frozenset[str] = frozenset(), stack: bool = True) -> None:
        self.device, self.removed, self.stack = device, removed, stack
        self.rng = random.Random(seed)
        self.now, self.tid, self.step, self.slowdown = 0.0, MAIN, 0, 1.0
        self.thefts: list[tuple[float, float]] = []
        self.recording = False
        self.rows: list[Row] = []
        self.activity: list[tuple[float, float, str]] = []
        self.components: set[str] = set()
        self._ready: dict[int, float] = defaultdict(float)
        self._starts: dict[int, deque[float]] = defaultdict(deque)
        self._ids, self._ops, self._frames = count(1), [0], [0]

    def work(self, component: str, us: float) -> None:
        """Lets the thread compute. Another process may take its core. Draws once, so all runs of a seed draw alike."""
        us = self._kept(component, us * exp(self.rng.gauss(0.0, 0.12)) * self.slowdown)
        start, end = self.now, self.now + us
        for at, stolen in self.thefts[bisect_right(self.thefts, (start, 0.0)) :]:
            if at >= end:
                break
            at, stolen = max(at, start), self._kept("preemption", stolen)
            self._log(start, at, component)
            self._log(at, at + stolen, "preemption")
            start, end = at + stolen, end + stolen
        self._log(start, end, component)
        self.now = end

    def wait(self, component: str, until: float) -> None:
        """Lets the thread sleep."""
        until = self.now + self._kept(component, max(0.0, until - self.now))
        self._log(self.now, until, component)
        self.now = until

    def _kept(self, component: str, us: float) -> float:
        if not self.recording:
            return us
        self.components.add(component)
        return 0.0 if component in self.removed else us

    def _log(self, start: float, end: float, component: str) -> None:
        if self.recording and end > start:
            self.activity.append((start, end, component))

    def add(self, category: str, name: str, start: float, tid: int = 0, end: float = 0.0, **args: Any) -> None:
        """Records an event of the current thread that ends now, unless told otherwise."""
        if self.recording:
            self.rows.append(Row(category, name, tid or self.tid, start, end or self.now, args))

    @contextmanager
    def frame(self, name: str) -> Iterator[None]:
        """A call of a Python function, which only a recording with stacks shows."""
        start, parent, own = self.now, self._frames[-1] or None, next(self._ids)
        self._frames.append(own)
        yield
        self._frames.pop()
        if self.stack:
            self.add("python_function", name, start, **{"Python parent id": parent, "Python id": own})

    @contextmanager
    def annotation(self, name: str) -> Iterator[None]:
        start, own = self.now, next(self._ids)
        yield
        self.add("user_annotation", name, start, **{"External id": own})

    @contextmanager
    def op(
        self, name: str, *dims: list[int], kind: str = "launch", half: bool = False, us: float = 5.0
    ) -> Iterator[None]:
        """An operator of a component; `us` is what it takes without what runs inside it."""
        start, own = self.now, next(self._ids)
        self._ops.append(own)
        self.work(kind, us * 0.7)
        yield
        self.work(kind, us * 0.3)
        self._ops.pop()
        args = {
            "External id": own,
            "Input Dims": list(dims),
            "Input type": ["c10::Half" if half else "float"] * len(dims),
        }
        self.add("cpu_op", name, start, **args)

    @contextmanager
    def _call(self, name: str) -> Iterator[dict[str, Any]]:
        """A call of the CUDA runtime."""
        start, args = self.now, {"correlation": next(self._ids), "External id": self._ops[-1]}
        yield args
        self.add("cuda_runtime", name, start, **args)

    def _enqueue(self, stream: int, us: float, call_us: float) -> tuple[float, float]:
        starts = self._starts[stream]
        while starts and starts[0] <= self.now:
            starts.popleft()
        if len(starts) >= QUEUE_DEPTH:
            self.wait("queue", starts[-QUEUE_DEPTH])
        start = max(self.now + START_US, self._ready[stream] + SEPARATION_US)
        self._ready[stream] = start + us
        starts.append(start)
        self.work("launch", call_us)
        return start, start + us

    def launch(self, kernel: Kernel, stream: int = STREAM, call: str = "cudaLaunchKernel") -> None:
        us = self._kept(kernel.regime, kernel.us * exp(self.rng.gauss(0.0, 0.03)))
        with self._call(call) as ids:
            start, end = self._enqueue(stream, us, 4.5)
        blocks = kernel.grid[0] * kernel.grid[1] / self.device.sms
        args = {"grid": list(kernel.grid), "block": [256, 1, 1], "blocks per SM": blocks, "warps per SM": blocks * 8}
        self.add("kernel", kernel.name, start, stream, end, step=self.step, **ids, **args)

    def copy(self, kind: str, size: int, rate: float, stream: int = STREAM, blocking: bool = True) -> None:
        """A copy like "HtoD (Pageable -> Device)" at `rate` GB/s, with the wait for it if it blocks."""
        us = self._kept("transfer", 1.2 + size / (rate * 1e3))
        with self._call("cudaMemcpyAsync") as ids:
            start, end = self._enqueue(stream, us, 7.0)
            if "Pageable" in kind and size > STAGED_BYTES:
                self.wait("sync", start)
                self.wait("transfer", end)
        args = {"bytes": size, "memory bandwidth (GB/s)": size / max(us, 0.001) / 1e3, "step": self.step}
        self.add("gpu_memcpy", f"Memcpy {kind}", start, stream, end, **ids, **args)
        if blocking:
            self.call("cudaStreamSynchronize", 3.0, "sync", self._ready[stream])

    def call(self, name: str, us: float, component: str = "launch", until: float = 0.0) -> None:
        """A call of the runtime that takes `us`, and first waits until a time."""
        with self._call(name):
            self.wait(component, until)
            self.work(component if component == "allocator" else "launch", us)

    def order(self, before: int, after: int) -> None:
        """Lets a stream wait for what another one holds now."""
        for name in ("cudaEventRecord", "cudaStreamWaitEvent"):
            self.call(name, 1.5)
        self._ready[after] = max(self._ready[after], self._ready[before])

    def device_end(self) -> float:
        return max(self._ready.values(), default=0.0)
