"""How busy the machine's cores are, and how many of them this process may use."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from tb_bottleneck.monitor.facts.cpu import usable_cores
from tb_bottleneck.monitor.samplers.sampler import Reading

# What a core's time is made of. Time of guests lies within user and nice; time that was stolen went to other machines
# under the same hypervisor, so this machine's core did not work in it.
_BUSY = ("user", "nice", "system", "irq", "softirq")
_IDLE = ("idle", "iowait", "steal")


def _core_times() -> Sequence[Any]:
    return psutil.cpu_times(percpu=True)


class Cores:
    """Busy cores, from the time that each core spent since the reading before."""

    every_s = 1.0

    def __init__(self, times: Callable[[], Sequence[Any]] = _core_times) -> None:
        self._times = times
        self._last: list[tuple[float, float]] = []

    def read(self) -> Iterator[Reading]:
        """The first reading gives nothing: there is nothing to compare it with."""
        last, self._last = self._last, [(_sum(core, _BUSY), _sum(core, _IDLE)) for core in self._times()]
        if len(last) != len(self._last):
            return  # cores came or went
        shares = []
        for (busy_before, idle_before), (busy_now, idle_now) in zip(last, self._last, strict=True):
            busy, idle = busy_now - busy_before, max(idle_now - idle_before, 0.0)  # idle time may go back a little
            if busy < 0 or busy + idle <= 0:
                return  # the system counts in ticks, and none has passed
            shares.append(busy / (busy + idle))
        if shares:
            yield Reading("cpu_busy_cores", sum(shares))
            yield Reading("cpu_top_core", max(shares))

    def missing(self) -> Mapping[str, str]:
        """Every system that psutil knows gives these."""
        return {}

    def close(self) -> None:
        """Nothing is open."""


class UsableCores:
    """Cores that this process may use. A quota can be changed from outside while the process runs."""

    every_s = 60.0

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def read(self) -> Iterator[Reading]:
        """One reading."""
        yield Reading("cpu_usable_cores", float(usable_cores(self._root)))

    def missing(self) -> Mapping[str, str]:
        """Known everywhere."""
        return {}

    def close(self) -> None:
        """Nothing is open."""


def _sum(core: Any, fields: tuple[str, ...]) -> float:
    return sum(float(getattr(core, field, 0.0)) for field in fields)
