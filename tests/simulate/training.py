"""Writes the program of a workload: the training loop, operator by operator.

Kernel names are the examples of knowledge/kernels.toml. The workload decides whether their grids fill the device.
"""

import random
from collections.abc import Iterator

from simulate.pieces import PAGEABLE_BYTES_PER_NS, Pieces, due
from simulate.program import (
    COMM_STREAM,
    COMPUTE_STREAM,
    INTERRUPT,
    LOAD,
    PYTHON,
    Allocate,
    Close,
    Copy,
    Fetch,
    Follow,
    Instruction,
    Kernel,
    Launch,
    Open,
    Program,
    Record,
    Spend,
    Thread,
    Wait,
    Workers,
)
from simulate.workload import Workload

# Steps before the recording: they use up prefetched batches and cover the profiler's warm-up.
UNRECORDED_STEPS = 3
# Duration of one driver call. Real calls take 50 us to 1 ms.
FREE_NS, MALLOC_NS = 300_000, 250_000

_OPERATORS = {
    "contraction": ("aten::linear", "aten::addmm", "AddmmBackward0", "aten::mm"),
    "streaming": ("aten::gelu", "aten::gelu", "GeluBackward0", "aten::gelu_backward"),
}
_ITERATORS = {"main": "_SingleProcessDataLoaderIter", "workers": "_MultiProcessingDataLoaderIter"}


def program_of(work: Workload) -> Program:
    """Returns the program; equal workloads give equal programs."""
    writer = _Writer(work)
    steps = [*writer.steps(0, UNRECORDED_STEPS), Record(), *writer.steps(UNRECORDED_STEPS, work.steps)]
    steps += [*writer.profiler_between_steps(), Wait("DeviceSynchronize", 3_000, 5_000)]
    workers = None
    if work.loader == "workers":
        jitter = random.Random(work.seed + 1)
        slow = [10 if jitter.random() < work.slow_batches else 1 for _ in range(97)] if work.slow_batches else [1] * 97
        times = tuple(int(work.load_ns * jitter.uniform(0.9, 1.1)) * times for times in slow)
        workers = Workers(work.workers, times)
    return Program(tuple(steps), workers)


class _Writer(Pieces):
    # --- the loop ---

    def steps(self, first: int, number: int) -> Iterator[Instruction]:
        for step in range(first, first + number):
            yield Open("annotation", f"ProfilerStep#{step}")
            yield Open("python", "train.py(42): train_step")
            yield from self._batch()
            yield from self._update()
            yield from self._afterwards(step)
            yield Close()
            yield Close()
            yield from self.profiler_between_steps()

    def profiler_between_steps(self) -> Iterator[Instruction]:
        yield Spend(self.about(30_000))

    def _batch(self) -> Iterator[Instruction]:
        work = self.work
        if not work.loader:
            return
        yield Open("python", "torch/utils/data/dataloader.py(701): __next__", LOAD)
        yield Open("annotation", f"enumerate(DataLoader)#{_ITERATORS[work.loader]}.__next__", LOAD)
        if work.loader == "main":
            yield from self._make_batch()
        else:
            yield Fetch(self.about(60_000))
        yield from (Close(), Close())
        for device in range(work.devices):
            yield from self._to_device(device)

    def _next_is_slow(self) -> bool:
        """Draws the slow ones of ten batches at a time, so that few steps contain as many of them as planted."""
        if not self.slow_in_ten:
            slow = round(10 * self.work.slow_batches)
            self.slow_in_ten = [True] * slow + [False] * (10 - slow)
            self.rng.shuffle(self.slow_in_ten)
        return self.slow_in_ten.pop()

    def _make_batch(self) -> Iterator[Instruction]:
        work = self.work
        slow = 10 if self._next_is_slow() else 1
        whole = slow * int(work.load_ns * self.rng.uniform(0.9, 1.1))
        if work.reading:
            yield Open("python", "<built-in method read of _io.BufferedReader object at 0x7f2f6c0f5e90>")
            yield Spend(int(whole * work.reading))
            yield Close()
        yield from self.op("aten::stack", [Spend(whole - int(whole * work.reading))])

    def _to_device(self, device: int) -> Iterator[Instruction]:
        work = self.work
        rate = work.link_rate if work.pinned else PAGEABLE_BYTES_PER_NS
        copy = Copy(
            direction="HtoD",
            bytes=work.batch_bytes,
            ns=max(int(work.batch_bytes / rate), 1_500),
            pinned=work.pinned,
            in_call="" if work.pinned else "staging",
            cost=self.about(8_000 if work.pinned else 20_000),
            latency=self.latency(),
            device=device,
        )
        inside: list[Instruction] = [Spend(self.about(10_000)), copy]
        if not work.non_blocking:
            inside.append(Wait("StreamSynchronize", 2_000, self.about(6_000), device))
        yield from self.op("aten::to", [*self.op("aten::_to_copy", [*self.op("aten::copy_", inside)])])
        yield Spend(self.about(10_000))

    def _update(self) -> Iterator[Instruction]:
        work = self.work
        if work.graph:
            for device in range(work.devices):
                kernels = tuple(self.kernel(graph=True) for _ in range(3 * work.layers * work.accumulation))
                yield Launch(kernels, self.about(40_000), self.latency() + 4_000, device=device, call="GraphLaunch")
        else:
            for _ in range(work.accumulation):
                if work.data_parallel:
                    yield Open("annotation", "DataParallel.forward")
                yield from self._forward()
                if work.data_parallel:
                    yield Close()
                yield from self._backward()
        yield from self._optimizer()

    def _forward(self) -> Iterator[Instruction]:
        for layer in range(self.work.layers):
            yield Open("python", "nn.Module: Linear_0")
            for device in range(self.work.devices):
                kernel = self.kernel()
                outer, inner, _, _ = _OPERATORS[kernel.work]
                yield from self.operator(kernel, outer, inner, device)
            if due(self.work.read_every_layers, layer):
                yield from self._scalar()
            if due(self.work.masked_every_layers, layer):
                yield from self.op("aten::nonzero", [*self.read(8)])
            yield Close()

    def _scalar(self) -> Iterator[Instruction]:
        yield from self.op("aten::item", [*self.op("aten::_local_scalar_dense", [*self.read(4)])])

    def _backward(self) -> Iterator[Instruction]:
        work = self.work
        yield Spend(self.about(30_000))
        yield Thread("autograd")
        for layer in range(work.layers):
            for device in range(work.devices):
                first = self.kernel()
                _, _, node, inner = _OPERATORS[first.work]
                launches: list[Instruction] = []
                for kernel in (first, self.kernel(first.work)):
                    launches += self.operator(kernel, inner, inner, device)
                evaluate = f"autograd::engine::evaluate_function: {node}"
                yield from self.op(evaluate, [*self.op(node, launches)])
            if work.buckets and not work.late_buckets and (layer + 1) % max(work.layers // work.buckets, 1) == 0:
                yield from self._collective()
        if work.late_buckets:
            yield Thread("main")
            yield Spend(self.about(20_000))
            for _ in range(work.buckets):
                yield from self._collective()
        if work.buckets:
            yield Follow(COMPUTE_STREAM, COMM_STREAM, 1_500, self.about(3_000))
        yield Thread("main")
        yield Spend(self.about(40_000))

    def _collective(self) -> Iterator[Instruction]:
        yield Open("op", "record_param_comms")
        yield Follow(COMM_STREAM, COMPUTE_STREAM, 1_500, self.about(2_000))
        name = self.rng.choice(self.names["collective"])
        ns = max(self.about(self.work.bucket_ns), 5_000)
        kernel = Kernel(name, "collective", ns, 24, self.gap(), bytes=self.work.bucket_bytes)
        yield Launch((kernel,), self.about(9_000), self.latency(), stream=COMM_STREAM, call="LaunchKernelExC")
        yield Close()

    def _optimizer(self) -> Iterator[Instruction]:
        yield Open("annotation", "Optimizer.step#AdamW.step")
        for _ in range(self.work.optimizer_kernels):
            kernel = self.kernel("streaming")
            yield from self.operator(kernel, "aten::_foreach_addcdiv_", "aten::_foreach_addcdiv_", 0)
        yield Close()
        yield Open("annotation", "Optimizer.zero_grad#AdamW.zero_grad")
        yield Spend(self.about(20_000))
        yield Close()

    # --- problems at the end of a step ---

    def _afterwards(self, step: int) -> Iterator[Instruction]:
        work = self.work
        for _ in range(work.scalar_reads):
            yield from self._scalar()
            yield Spend(self.about(15_000))
        for _ in range(work.cpu_reads):
            yield from self.op("aten::item", [*self.op("aten::_local_scalar_dense", [Spend(1_000)])])
        for _ in range(work.metric_reads):
            yield from self.op("aten::to", [*self.op("aten::copy_", [*self.read(40_000)])])
            yield Spend(self.about(25_000))
        for _ in range(work.synchronizes):
            yield Wait("DeviceSynchronize", 2_000, self.about(6_000))
        if due(work.print_every, step):
            yield from self._scalar()
            yield Spend(self.about(120_000))
        for _ in range(work.pauses):
            yield Spend(self.about(work.pause_ns), PYTHON)
            yield from self.operator(self.kernel("streaming"), "aten::add_", "aten::add_", 0)
        if due(work.save_every, step):
            yield from self._phase("torch/serialization.py(943): save", self._save())
        if due(work.collect_every, step):
            yield from self._phase("Python GC", [Spend(self.about(work.collect_ns), PYTHON)])
        if due(work.evaluate_every, step):
            yield Open("annotation", "evaluate", INTERRUPT)
            yield from self._forward()
            yield from self._scalar()
            yield Close()
        if due(work.empty_every, step):
            yield from self._empty_cache()

    def _phase(self, frame: str, inside: list[Instruction]) -> Iterator[Instruction]:
        """Yields an interruption that only a Python frame shows. Without frames it counts as ordinary Python."""
        yield Open("python", frame, INTERRUPT if self.work.stacks else "")
        yield from inside
        yield Close()

    def _save(self) -> list[Instruction]:
        instructions: list[Instruction] = []
        for _ in range(6):
            instructions += self.op("aten::to", [*self.op("aten::copy_", [*self.read(400_000)])])
            instructions.append(Spend(self.about(self.work.save_ns) // 6, PYTHON))
        return instructions

    def _empty_cache(self) -> Iterator[Instruction]:
        for _ in range(max(self.work.mallocs // 2, 1)):
            free: list[Instruction] = [Allocate("Free", self.about(FREE_NS), drains=True)]
            yield from self.op("aten::empty", free) if self.work.pressed else free
            yield Spend(3_000)
        for _ in range(self.work.mallocs):
            yield from self.op("aten::empty", [Allocate("Malloc", self.about(MALLOC_NS), drains=False)])
            yield from self.operator(self.kernel("streaming"), "aten::fill_", "aten::fill_", 0)
