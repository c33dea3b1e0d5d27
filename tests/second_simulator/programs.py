"""Training loops, usual and unusual ones. A seed draws how large each cost is, so a loss may also be none."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from second_simulator.kernels import all_reduce, elementwise, matrix_product
from second_simulator.loader import Loader, Storage
from second_simulator.machine import BACKGROUND, COPY_STREAM, SIDE_STREAM, STREAM, Machine
from second_simulator.network import Layer, Network, move, read_scalar

WARMUP = 3
UP, STAGED, DOWN = "HtoD (Pinned -> Device)", "HtoD (Pageable -> Device)", "DtoH (Device -> Pageable)"
LOCAL_DISK = Storage(80.0, 2500.0)

Part = Callable[[], object]


@dataclass(frozen=True)
class Program:
    """What one step does in turn; `marked` if it calls profiler.step()."""

    parts: tuple[Part, ...]
    steps: int = 8
    marked: bool = True
    ranks: int = 1


class Kit:
    """The parts of loops on one machine: a network that fills the device, and what else a loop does."""

    def __init__(self, draw: Random, m: Machine) -> None:
        self.draw, self.m = draw, m
        self.net = self.stack(draw.choice((4096, 8192, 12288)), draw.choice((2048, 4096)), draw.randint(3, 6))
        inner = [x for x in self.net.layers if x.inner]
        self.us = 3.5 * sum(matrix_product(m.device, x.rows, x.width, x.inner, True).us for x in inner)
        self.item = partial(read_scalar, m)

    def stack(self, rows: int, width: int, depth: int) -> Network:
        block = [Layer("Linear", rows, width, width), Layer("LayerNorm", rows, width), Layer("ReLU", rows, width)]
        return Network(self.m, block * depth, overhead=self.draw.uniform(0.7, 1.8))

    def small(self) -> Network:
        return self.stack(self.draw.choice((32, 64, 256)), self.draw.choice((128, 256, 512)), self.draw.randint(4, 9))

    def part(self, low: float, high: float) -> float:
        """Returns a share of the device's time for a step, in microseconds."""
        return self.us * self.draw.uniform(low, high)

    def flip(self) -> bool:
        return self.draw.random() < 0.5

    def load(self, workers: int = 6, us: float = 500.0, store: Storage = LOCAL_DISK, slowdown: float = 1.0) -> Loader:
        """Returns a loader. With a slowdown, its workers and the main process share the cores with others."""
        self.m.slowdown = slowdown
        return Loader(self.m, workers, 8.0, us, store)

    def move(self, kind: str, megabytes: float = 8.0) -> Part:
        return partial(move, self.m, kind, megabytes)

    def host(self, component: str, us: float, name: str, times: int = 1) -> Part:
        """Calls of an operator on CPU tensors, or of a Python function."""

        def run() -> None:
            with self.m.op(name, [256, 4096], kind=component) if "aten" in name else self.m.frame(name):
                self.m.work(component, us / times)

        return self.repeat(times, run)

    def repeat(self, times: int, *parts: Part, spread: int = 0) -> Part:
        def run() -> None:
            for _ in range(times + Random(self.m.step).randint(-spread, spread)):
                for part in parts:
                    part()

        return run

    def every(self, period: int, *parts: Part) -> Part:
        return lambda: [part() for part in parts] if self.m.step % period == 0 else None

    def empty_cache(self, us: float, segments: int) -> Part:
        call, each = self.m.call, us / segments / 2
        free = self.repeat(segments, lambda: call("cudaFree", each, "allocator", self.m.device_end()))
        return self.repeat(1, free, self.repeat(segments, lambda: call("cudaMalloc", each, "allocator")))

    def side_streams(self, megabytes: float) -> Part:
        def run() -> None:
            m = self.m
            m.copy(UP, int(megabytes * 1e6), m.device.pinned, COPY_STREAM, blocking=False)
            m.order(STREAM, SIDE_STREAM)
            m.launch(elementwise(m.device, 4_000_000, True), SIDE_STREAM)
            self.net.train()
            m.order(COPY_STREAM, STREAM)

        return run

    def stolen(self, program: Program, every: tuple[float, float], us: tuple[float, float]) -> Program:
        """Gives the thread's core, or its interpreter lock, to others."""
        at = 0.0
        for _ in range(600):
            at += self.draw.uniform(*every)
            self.m.thefts.append((at, self.draw.uniform(*us)))
        return program

    def background(self) -> None:
        if self.m.stack:
            self.m.add("python_function", "uploader.py(12): run", self.m.now - 1000.0, BACKGROUND)

    def loop(self, *after: Part, load: Loader | Part | None = None, before: tuple[Part, ...] = (),
             net: Network | None = None, kind: str = UP, megabytes: float = 8.0, steps: int = 8,
             ranks: int = 1) -> Program:  # fmt: skip
        load = load or Loader(self.m, 6, min(megabytes, 8.0), 500.0, LOCAL_DISK)
        first = load.next if isinstance(load, Loader) else load
        return Program(
            (first, *before, self.move(kind, megabytes), (net or self.net).train, *after), steps, ranks=ranks
        )

    def pause(self, frame: str, *parts: Part, high: float = 12.0) -> Program:
        long = self.host("pause", self.part(0.3, high), frame)
        return self.loop(self.every(self.draw.choice((1, 3, 6)), *parts, long))

    def ranks(self, bandwidth: float, late: float = 0.0) -> Program:
        self.net.exchange = all_reduce(16.0, bandwidth, late)
        return self.loop(ranks=8)


PROGRAMS: dict[str, Callable[[Kit], Program]] = {
    "healthy": lambda k: k.loop(),
    "healthy_elementwise": lambda k: k.loop(net=Network(k.m, k.net.layers[1:3] * 15, half=False)),
    "healthy_reads_loss": lambda k: k.loop(k.every(4, k.item)),
    "long_reduction": lambda k: k.loop(k.repeat(
        k.draw.randint(20, 60), partial(k.net.product, "aten::mm", 128, 256, k.draw.choice((65536, 262144))))),
    "slow_storage": lambda k: k.loop(load=k.load(8, 800.0, Storage(9e3, 8e6 / k.part(0.7, 2.5))), steps=24),
    "storage_stalls": lambda k: k.loop(load=k.load(2, 5e2, Storage(3e2, 2e3, k.part(3, 6), k.part(0.5, 6))), steps=16),
    "slow_transforms": lambda k: k.loop(load=k.load(2, 2 * k.part(0.8, 3)), steps=14),
    "loads_in_process": lambda k: k.loop(load=k.load(0, k.part(0.2, 3)), kind=STAGED),
    "reads_in_generator": lambda k: k.loop(load=k.host("reader", k.part(0.2, 2), "reader.py(17): read"), kind=STAGED),
    "epoch_restart": lambda k: k.loop(load=(x := k.load(4, k.part(0.5, 3))), steps=12,
        before=(k.every(6, partial(x.restart, k.draw.uniform(1e3, 1e4))),)),
    "pageable_copies": lambda k: k.loop(kind=STAGED, megabytes=k.part(0.1, 2) * k.m.device.pageable / 1e3),
    "offloads": lambda k: Program((
        k.net.forward, k.move(DOWN, x := k.part(0.1, 1) / 200), k.move(STAGED, x), k.net.backward, k.net.optimize)),
    "reads_scalars": lambda k: k.loop(k.repeat(k.draw.randint(3, 20), k.stack(1024, 1024, 6).forward, k.item)),
    "sorts_on_cpu": lambda k: k.loop(k.move(DOWN, 1.0), k.host("metric", k.part(0.2, 2), "aten::sort")),
    "augments_on_cpu": lambda k: k.loop(
        before=(k.host("augmentation", k.part(0.2, 2), "aten::mul", 12),), kind=STAGED),
    "python_after_read": lambda k: k.loop(k.item, k.host("host", k.part(0.1, 2), "metrics.py(30): update")),
    "overlapped_python": lambda k: k.loop(k.host("host", k.part(0.2, 2), "metrics.py(30): update")),
    "small_operators": lambda k: k.loop(net=k.small(), megabytes=0.2),
    "recurrent": lambda k: Program(
        (k.repeat(20, (n := k.stack(64, 512, 1)).forward, spread=8), n.train), marked=k.flip()),
    "empties_cache": lambda k: k.loop(k.empty_cache(k.part(0.1, 1.0), k.draw.randint(2, 12))),
    "saves_checkpoint": lambda k: k.pause("torch/serialization.py(967): save", k.move(DOWN, 40.0)),
    "collects_garbage": lambda k: k.pause("<built-in function collect>", high=2.0),
    "logs_to_slow_disk": lambda k: k.pause("torch/utils/tensorboard/writer.py(358): add_scalar", k.item, high=4.0),
    "evaluates": lambda k: k.loop(k.every(
        4, k.repeat(4, k.net.forward, k.item, k.host("evaluation", k.part(0.1, 1), "train.py(61): evaluate")))),
    "accumulates_gradients": lambda k: Program((k.repeat(
        4, k.load(4, k.part(0.1, 3)).next, k.move(UP), k.net.forward, k.net.backward, k.item), k.net.optimize)),
    "adversarial_pair": lambda k: Program(
        (k.net.forward, k.small().train, k.item, k.stack(512, 1024, 5).train, k.item)),
    "reinforcement": lambda k: Program((k.repeat(
        k.draw.randint(4, 16), (n := k.small()).forward, k.item,
        k.host("environment", k.draw.uniform(200, 8000), "gym/core.py(327): step"), k.move(STAGED, 0.1)
    ), n.train), marked=k.flip()),
    "side_streams": lambda k: Program((k.side_streams(k.part(0.2, 2) * k.m.device.pinned / 1e3),)),
    "slow_network": lambda k: k.ranks(64e3 / k.part(0.1, 3)),
    "late_rank": lambda k: k.ranks(150.0, k.part(0.1, 1)),
    "contended_cores": lambda k: k.loop(
        load=k.load(4, 2e3, slowdown=k.draw.uniform(1.5, 5)), net=k.stack(2048, 1024, 6), steps=14),
    "preempted": lambda k: k.stolen(k.loop(net=k.small(), megabytes=0.2, steps=40), (2000, 12000), (500, 8000)),
    "lock_holder": lambda k: k.stolen(k.loop(k.item, k.background), (6000, 15000), (5000, 5000)),
    "inference": lambda k: Program(marked=k.flip(), parts=(
        k.load(4, k.part(0.2, 4)).next, k.move(UP), k.net.forward, k.move(DOWN, k.draw.uniform(0.1, 40)))),
    "decodes_until_end": lambda k: Program(
        (k.repeat(9, k.stack(32, 2048, 6).forward, k.item, spread=6),), marked=False),
    "nested_loops": lambda k: Program(marked=False, parts=(k.repeat(
        4, k.host("host", k.draw.uniform(1e2, 6e3), "solver.py(52): adapt"), k.stack(512, 1024, 4).train),)),
    "trains_on_cpu": lambda k: Program((k.host("metric", k.draw.uniform(3e3, 3e4), "aten::addmm", 12),)),
}  # fmt: skip
