"""The same training on another device: the program is the host's, its kernels take the other device's time.

What is true of the other device, told by none of the analyser's means but the data sheets, which both read:
- a kernel that arithmetic bounds takes the ratio of the rates of the units it runs on (each name is given one), one
  that bandwidth bounds the ratio of the bandwidths, each times a factor of its own by name, log-normal with a spread of
  MISSED: what predictions of kernels on another device were published to miss by;
- of a grid with fewer blocks than multiprocessors only the part of the device that it can use counts;
- nothing is over sooner than SHORTEST_NS, and what takes less on the first device takes as long on the other;
- copies of pinned memory go by the link; collectives by the links between devices; pageable ones by the host.
The host does the same, each piece of its work taking up to JITTER more or less.
"""

import json
import math
import random
from dataclasses import dataclass, replace
from functools import cached_property

from simulate.pieces import MULTIPROCESSORS
from simulate.program import Copy, Fetch, Instruction, Kernel, Launch, Program, Spend
from tb_bottleneck.knowledge.gpus import Gpu, gpu_named, multiprocessors_of
from tb_bottleneck.knowledge.precisions import precision_of

HERE_NAME = "NVIDIA A100-SXM4-40GB"
THERE = (
    "Tesla V100-SXM2-32GB",
    "Tesla T4",
    "NVIDIA A100-SXM4-80GB",
    "NVIDIA H100 80GB HBM3",
    "NVIDIA H200",
    "NVIDIA L40S",
    "NVIDIA GeForce RTX 4090",
)
MISSED = 0.12  # Habitat (ATC'21): 11.8 % on average
JITTER = 0.05
SHORTEST_NS, LARGE_BYTES = 2_000, 1 << 20
# GB/s of sixteen lanes by generation.
LINK = {3: 15.8, 4: 31.5, 5: 63.0}


@dataclass(frozen=True)
class Elsewhere:
    """Another device, and the chances of one training on it."""

    name: str
    seed: int
    missed: float = MISSED

    @cached_property
    def gpu(self) -> Gpu:
        found = gpu_named(self.name)
        assert found is not None, self.name
        return found

    @property
    def multiprocessors(self) -> int:
        found = multiprocessors_of(self.gpu.name)
        assert found is not None, self.name
        return found

    def program(self, program: Program) -> Program:
        """The program as it runs there."""
        rng = random.Random(self.seed * 13 + 5)
        workers = program.workers
        if workers is not None:
            workers = replace(workers, load_ns=tuple(_about(ns, rng) for ns in workers.load_ns))
        return Program(tuple(self._instruction(one, rng) for one in program.instructions), workers)

    def relabelled(self, text: str) -> str:
        """A recording of the program, with this device in its head."""
        trace = json.loads(text)
        for facts in trace.get("deviceProperties", []):
            facts.update(name=self.name, numSms=self.multiprocessors)
        return json.dumps(trace)

    def _instruction(self, one: Instruction, rng: random.Random) -> Instruction:
        if isinstance(one, Spend):
            return Spend(_about(one.ns, rng), one.doing)
        if isinstance(one, Fetch):
            return replace(one, cost=_about(one.cost, rng))
        if isinstance(one, Launch):
            return replace(one, cost=_about(one.cost, rng), kernels=tuple(map(self._kernel, one.kernels)))
        if isinstance(one, Copy) and one.pinned and one.bytes >= LARGE_BYTES:
            return replace(one, ns=max(int(one.ns / self._link()), 1_500))
        return one

    def _kernel(self, kernel: Kernel) -> Kernel:
        if kernel.work == "collective":
            here, there = _here().nvlink, self.gpu.nvlink
            return replace(kernel, ns=int(kernel.ns * here / there)) if here and there else kernel
        if kernel.ns < 5_000:
            return kernel
        fill = [min(kernel.blocks / processors, 1.0) for processors in (MULTIPROCESSORS, self.multiprocessors)]
        luck = random.Random(f"{self.seed} {self.name} {kernel.name}").gauss(0.0, self.missed)
        factor = self._ratio(kernel) * fill[1] / fill[0] * math.exp(luck)
        return replace(kernel, ns=max(int(kernel.ns / factor), min(kernel.ns, SHORTEST_NS)))

    def _ratio(self, kernel: Kernel) -> float:
        """Rate there / rate here of what bounds the kernel."""
        here, there = _here(), self.gpu
        if kernel.work != "contraction":
            return there.bandwidth / here.bandwidth
        precision = precision_of(kernel.name)
        rates = [gpu.peak_of(precision) if precision else None for gpu in (here, there)]
        if rates[0] and rates[1] and precision and precision.unit == "tensor":
            shares = (here.achievable, there.achievable)
            reach = shares[1] / shares[0] if shares[0] and shares[1] else 1.0
            return rates[1] / rates[0] * reach
        first = rates[0] or here.tflops["fp32"]
        return (rates[1] or there.tflops["fp32"]) / first

    def _link(self) -> float:
        here, there = (LINK[gpu.pcie_generation or 3] * (gpu.pcie_lanes or 16) / 16 for gpu in (_here(), self.gpu))
        return there / here


def _here() -> Gpu:
    found = gpu_named(HERE_NAME)
    assert found is not None
    return found


def _about(ns: int, rng: random.Random) -> int:
    return int(ns * rng.uniform(1 - JITTER, 1 + JITTER))
