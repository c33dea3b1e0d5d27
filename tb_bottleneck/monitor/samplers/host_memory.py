"""How much of the machine's memory is in use."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import psutil

from tb_bottleneck.monitor.samplers.sampler import Reading


class HostMemory:
    """The share that programs could not get without swapping; caches that would give way do not count."""

    every_s = 5.0

    def __init__(self, look: Callable[[], Any] = psutil.virtual_memory) -> None:
        self._look = look

    def read(self) -> Iterator[Reading]:
        """One reading."""
        memory = self._look()
        yield Reading("host_memory_used", 1.0 - float(memory.available) / float(memory.total))

    def missing(self) -> Mapping[str, str]:
        """Every system that psutil knows gives it."""
        return {}

    def close(self) -> None:
        """Nothing is open."""
