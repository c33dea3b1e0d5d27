"""The number of busy cores of the machine, and of cores that this process may use."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from tb_bottleneck.monitor.facts.cpu import usable_cores
from tb_bottleneck.monitor.samplers.sampler import Reading

# The parts of a core's time. Guest time is included in user and nice. Stolen time went to other machines under the same
# hypervisor, so this machine's core was not busy.
_BUSY = ("user", "nice", "system", "irq", "softirq")
_IDLE = ("idle", "iowait", "steal")


def _core_times() -> Sequence[Any]:
    return psutil.cpu_times(percpu=True)


class Cores:
    """Busy cores since the last reading."""

    every_s = 1.0

    def __init__(self, times: Callable[[], Sequence[Any]] = _core_times) -> None:
        self._times = times
        self._last: list[tuple[float, float]] = []

    def read(self) -> Iterator[Reading]:
        """Yields nothing at the first reading."""
        last, self._last = self._last, [(_sum(core, _BUSY), _sum(core, _IDLE)) for core in self._times()]
        if len(last) != len(self._last):
            return  # cores were added or removed
        shares = []
        for (busy_before, idle_before), (busy_now, idle_now) in zip(last, self._last, strict=True):
            busy, idle = busy_now - busy_before, max(idle_now - idle_before, 0.0)  # idle time may decrease a little
            if busy < 0 or busy + idle <= 0:
                return  # the system counts in ticks, and no tick has passed
            shares.append(busy / (busy + idle))
        if shares:
            yield Reading("cpu_busy_cores", sum(shares))
            yield Reading("cpu_top_core", max(shares))

    def missing(self) -> Mapping[str, str]:
        """Returns nothing: available on every system that psutil supports."""
        return {}

    def close(self) -> None:
        """Does nothing."""


class UsableCores:
    """Cores that this process may use. Its quota may change while the process runs."""

    every_s = 60.0

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def read(self) -> Iterator[Reading]:
        """Yields one reading."""
        yield Reading("cpu_usable_cores", float(usable_cores(self._root)))

    def missing(self) -> Mapping[str, str]:
        """Returns nothing: available on every system."""
        return {}

    def close(self) -> None:
        """Does nothing."""


def _sum(core: Any, fields: tuple[str, ...]) -> float:
    return sum(float(getattr(core, field, 0.0)) for field in fields)
