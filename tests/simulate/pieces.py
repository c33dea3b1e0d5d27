"""The building blocks of a simulated training: operators, kernels and reads, with random durations."""

import random
from collections.abc import Iterator

from simulate.program import Close, Copy, Instruction, Kernel, Launch, Open, Spend, Wait
from simulate.workload import Workload
from tb_bottleneck.knowledge.catalogue import kernel_patterns

MULTIPROCESSORS = 108
PAGEABLE_BYTES_PER_NS, PINNED_BYTES_PER_NS = 5.0, 24.0


def due(every: int, count: int) -> bool:
    """Returns True if an event that occurs every `every` times is due at `count`; 0 means never."""
    return every > 0 and count % every == every - 1


class Pieces:
    """Draws the building blocks of one workload, in order, from its seed."""

    def __init__(self, work: Workload) -> None:
        self.work = work
        self.rng = random.Random(work.seed)
        self.slow_in_ten: list[bool] = []
        self.names = {
            kind: [entry.example for entry in kernel_patterns() if entry.label == kind]
            for kind in ("contraction", "streaming", "collective")
        }
        for kind, name in (("contraction", work.product_name), ("streaming", work.stream_name)):
            if name:
                self.names[kind] = [name]
        self._kernels = 0

    def read(self, size: int) -> Iterator[Instruction]:
        """Reads device memory. Since torch 2.4 a read copies to pinned memory, then waits; before, the copy waited."""
        old = self.work.old_reads
        ns = 1_500 + int(size / (PAGEABLE_BYTES_PER_NS if old else PINNED_BYTES_PER_NS))
        yield Spend(self.about(4_000))
        yield Copy("DtoH", size, ns, not old, "end" if old else "", self.about(7_000), self.latency())
        yield Spend(1_000)
        yield Wait("StreamSynchronize", 2_000, self.about(6_000))

    def op(self, name: str, inside: list[Instruction]) -> Iterator[Instruction]:
        yield Open("op", name)
        yield Spend(1_500)
        yield from inside
        yield Spend(1_000)
        yield Close()

    def operator(self, kernel: Kernel, outer: str, inner: str, device: int) -> Iterator[Instruction]:
        cost = self.about(self.work.operator_ns)
        slow = self.rng.random() < self.work.slow_launches
        launch = Launch((kernel,), self.about(50_000 if slow else 5_000), self.latency(), device=device)
        yield from self.op(outer, [Spend(cost // 3), *self.op(inner, [Spend(cost // 3), launch])])
        yield Spend(cost // 3)

    def kernel(self, kind: str = "", graph: bool = False) -> Kernel:
        work, rng = self.work, self.rng
        kind = kind or ("contraction" if rng.random() < work.contractions else "streaming")
        filled = rng.random() < work.filled
        blocks = MULTIPROCESSORS * rng.randint(1, 20) if filled else rng.randint(1, MULTIPROCESSORS // 3)
        ns = int(work.kernel_ns * rng.uniform(0.5, 1.5))
        # Avoid durations near 5 us, the limit of short kernels, so that rounding does not decide.
        ns = ns if ns > 6_500 else max(min(ns, 3_500), 1_000)
        self._kernels += 1
        stall = work.stall_ns if due(work.stall_every, self._kernels) else 0
        gap = self.about(800) if graph else self.gap()
        return Kernel(rng.choice(self.names[kind]), kind, ns, blocks, gap, stall)

    def about(self, ns: int) -> int:
        return int(ns * self.rng.uniform(0.8, 1.25))

    def gap(self) -> int:
        return int(self.rng.uniform(700, 1_800))

    def latency(self) -> int:
        return int(self.rng.uniform(4_500, 8_000))
