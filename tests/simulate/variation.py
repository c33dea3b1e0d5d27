"""How a second run of a real training differs from the first one, besides its fix: for fixed runs that are not ideal.

The spreads are measured on real recordings, the pairs of the folder TB_BOTTLENECK_PAIRS and of demo/recorded:
- HOST: two recordings of one training on one machine. The median time of a CUDA call differs between them by 1 to 26 %;
  the root mean square of the logarithm of the ratio is 0.13. These are 11 pairs: before and after of kineto_*_b, flux,
  nanogpt and six of sam2 (change or not, the calls are the same), and both kineto recordings of either kind.
- DEVICE: the same for kernels of equal names, 0.02 (9 pairs: those in which the change leaves the kernels alone).
- SHARE: the saving that came / the predicted saving has a standard deviation of 0.25 (16 changes, GAINS.md), and a
  smaller one if the fix saves most of the step (replay/gain.py). Code is rewritten in part, or a part of it cannot be.
  In the simulator no fix saves more than all.
- WORKERS: workers share memory, cores and storage. Beside four of them a V100's step took 12 % longer, beside two of
  them on two cores the model took 35 % longer.
"""

import math
import random
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from simulate.program import Program

HOST, DEVICE, SHARE, WORKERS = 0.13, 0.02, 0.25, 1.35
# The fields of instructions with time of the host, and of the device.
_HOST_FIELDS, _DEVICE_FIELDS = ("cost", "latency", "lag"), ("ns", "gap", "stall")


@dataclass(frozen=True)
class Variation:
    """Factors of the host's and the device's time and of a worker's time per batch, and the share of a fix that works.

    Without arguments, nothing varies and the fix is complete.
    """

    host: float = 1.0
    device: float = 1.0
    workers: float = 1.0
    share: float = 1.0
    rng: random.Random = field(default_factory=lambda: random.Random(0), compare=False)

    def takes_effect(self) -> bool:
        """Returns whether the fix works at one more place of the program."""
        return self.rng.random() < self.share

    def applied(self, program: Program) -> Program:
        """Returns the program with the times of this run."""
        workers = program.workers
        if workers is not None:
            workers = replace(workers, load_ns=tuple(round(ns * self.host * self.workers) for ns in workers.load_ns))
        return Program(tuple(self._scaled(one) for one in program.instructions), workers)

    def _scaled(self, one: Any) -> Any:
        kernels = getattr(one, "kernels", None)
        on_device = one.__class__.__name__ == "Copy"
        changes: dict[str, Any] = {}
        if kernels is not None:
            changes["kernels"] = tuple(_times(kernel, _DEVICE_FIELDS, self.device) for kernel in kernels)
        fields = _HOST_FIELDS if on_device or kernels is not None else (*_HOST_FIELDS, "ns")
        return replace(_times(one, fields, self.host), **changes)


IDEAL = Variation()


def drawn(name: str, gain: float) -> Variation:
    """Returns the variation of the fixed run with this name, which is its seed. `gain` is that of the whole fix."""
    rng = random.Random(f"variation {name}")
    return Variation(
        host=math.exp(rng.gauss(0.0, HOST)),
        device=math.exp(rng.gauss(0.0, DEVICE)),
        workers=rng.uniform(1.0, WORKERS),
        share=min(rng.gauss(1.0, SHARE / max(gain, 1.0) ** 0.5), 1.0),
        rng=rng,
    )


def _times(one: Any, fields: tuple[str, ...], factor: float) -> Any:
    return replace(one, **{name: round(getattr(one, name) * factor) for name in fields if hasattr(one, name)})
