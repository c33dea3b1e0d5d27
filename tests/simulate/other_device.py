"""The same training on another device: the program is unchanged, its kernels take the other device's time.

The other device's times are computed without the analyser's code; only the data sheets are shared:
- the time of a compute-bound kernel scales with the rates of the units it runs on (given by its name), the time of a
  memory-bound kernel with the bandwidths; each is multiplied by two log-normal factors, one of the whole training and
  one of the kernel's name. The published mean error of predictions for another device, MISSED, is that of whole
  trainings, so it gives the spread of the first; the spread of the second is not known, and taken as equal;
- a grid with fewer blocks than multiprocessors uses only its part of the device;
- no kernel is shorter than SHORTEST_NS, and one that is shorter on the first device takes as long on the other;
- copies of pinned memory scale with the PCIe link, collectives with the links between devices, pageable copies with
  the host.
The host does the same work, each part up to JITTER longer or shorter, and as a whole faster or slower, as two runs on
one host differ (simulate/variation.py).
"""

import json
import math
import random
from dataclasses import dataclass
from functools import cached_property

from msgspec.structs import replace

from simulate.pieces import MULTIPROCESSORS
from simulate.program import Copy, Fetch, Instruction, Kernel, Launch, Program, Spend
from simulate.variation import HOST, Variation
from tb_bottleneck.knowledge.catalogue import precision_of
from tb_bottleneck.knowledge.gpus import Gpu, gpu_named, multiprocessors_of

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
MISSED = 0.118  # Habitat (ATC'21), on average
SPREAD_PER_MEAN = math.sqrt(math.pi / 2)  # standard deviation / mean size of a normal error
JITTER = 0.05
SHORTEST_NS, LARGE_BYTES = 2_000, 1 << 20
# GB/s of sixteen PCIe lanes, by generation.
LINK = {3: 15.8, 4: 31.5, 5: 63.0}


@dataclass(frozen=True)
class OtherDevice:
    """Another device, with the random factors of one training."""

    name: str
    seed: int
    missed: float = MISSED
    host: float = HOST

    @property
    def drift(self) -> float:
        """The factor of the host's time."""
        return math.exp(random.Random(f"host {self.seed} {self.name}").gauss(0.0, self.host))

    @cached_property
    def gpu(self) -> Gpu:
        gpu = gpu_named(self.name)
        assert gpu is not None, self.name
        return gpu

    @property
    def multiprocessors(self) -> int:
        count = multiprocessors_of(self.gpu.name)
        assert count is not None, self.name
        return count

    def program(self, program: Program) -> Program:
        """Returns the program with this device's durations."""
        rng = random.Random(self.seed * 13 + 5)
        workers = program.workers
        if workers is not None:
            workers = replace(workers, load_ns=tuple(_about(ns, rng) for ns in workers.load_ns))
        there = Program(tuple(self._instruction(one, rng) for one in program.instructions), workers)
        return Variation(host=self.drift).applied(there)

    def relabelled(self, text: str) -> str:
        """Returns a recording of the program with this device in its header."""
        trace = json.loads(text)
        for facts in trace.get("deviceProperties", []):
            facts.update(name=self.name, numSms=self.multiprocessors)
        return json.dumps(trace)

    def _instruction(self, one: Instruction, rng: random.Random) -> Instruction:
        if isinstance(one, Spend):
            return Spend(_about(one.ns, rng), one.activity)
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
        lucks = (
            random.Random(f"{self.seed} {self.name} {of}").gauss(0.0, self.missed * SPREAD_PER_MEAN)
            for of in ("training", kernel.name)
        )
        factor = self._ratio(kernel) * fill[1] / fill[0] * math.exp(sum(lucks))
        return replace(kernel, ns=max(int(kernel.ns / factor), min(kernel.ns, SHORTEST_NS)))

    def _ratio(self, kernel: Kernel) -> float:
        """Returns rate there / rate here of the resource that bounds the kernel."""
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
        here, there = (LINK[gpu.pcie.generation or 3] * (gpu.pcie.lanes or 16) / 16 for gpu in (_here(), self.gpu))
        return there / here


def _here() -> Gpu:
    gpu = gpu_named(HERE_NAME)
    assert gpu is not None
    return gpu


def _about(ns: int, rng: random.Random) -> int:
    return int(ns * rng.uniform(1 - JITTER, 1 + JITTER))
