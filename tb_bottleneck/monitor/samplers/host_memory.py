"""The share of the machine's memory in use."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import psutil

from tb_bottleneck.monitor.samplers.sampler import Reading


class HostMemory:
    """The share of memory that is not available without swapping. Reclaimable caches count as available."""

    every_s = 5.0

    def __init__(self, virtual_memory: Callable[[], Any] = psutil.virtual_memory) -> None:
        self._virtual_memory = virtual_memory

    def read(self) -> Iterator[Reading]:
        """Yields one reading."""
        memory = self._virtual_memory()
        yield Reading("host_memory_used", 1.0 - float(memory.available) / float(memory.total))

    def missing(self) -> Mapping[str, str]:
        """Returns nothing: available on every system that psutil supports."""
        return {}

    def close(self) -> None:
        """Does nothing."""
