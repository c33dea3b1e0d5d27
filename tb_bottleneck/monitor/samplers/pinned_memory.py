"""The memory of the host that torch has pinned: pages that the system can neither move nor write to disk."""

from collections.abc import Callable, Iterator, Mapping

from tb_bottleneck.monitor.accelerator import pinned_bytes
from tb_bottleneck.monitor.samplers.sampler import Reading

_NAME = "pinned_memory"


class PinnedMemory:
    """Pinned bytes in use and cached by torch's host allocator. Its statistics are counters: no device waits."""

    every_s = 5.0

    def __init__(self, pinned: Callable[[], float | None] = pinned_bytes) -> None:
        self._pinned = pinned

    def read(self) -> Iterator[Reading]:
        """Yields one reading once a device is in use."""
        value = self._pinned()
        if value is not None:
            yield Reading(_NAME, value)

    def missing(self) -> Mapping[str, str]:
        """Returns the signal while torch does not count it."""
        if self._pinned() is not None:
            return {}
        return {_NAME: "torch does not count it: it needs a CUDA device in use, and torch 2.6 or newer"}

    def close(self) -> None:
        """Does nothing."""
