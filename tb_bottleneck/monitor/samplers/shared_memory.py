"""The file system in which processes share memory: /dev/shm, through which a loader's workers pass their batches."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tb_bottleneck.monitor.samplers.sampler import Reading

_NAMES = ("shared_memory_used", "shared_memory_total")


class SharedMemory:
    """Bytes in use, and the size. In containers the size is often only 64 MB."""

    every_s = 5.0

    def __init__(self, root: Path = Path("/"), statvfs: Callable[[Path], Any] | None = None) -> None:
        self._folder = root / "dev/shm"
        self._statvfs = statvfs or getattr(os, "statvfs", None)  # Windows has none

    def read(self) -> Iterator[Reading]:
        """Yields both, or nothing without such a file system."""
        if self._statvfs is None or not self._folder.is_dir():
            return
        facts = self._statvfs(self._folder)
        total, free = facts.f_blocks * facts.f_frsize, facts.f_bfree * facts.f_frsize
        if total > 0:
            yield from (Reading(name, float(value)) for name, value in zip(_NAMES, (total - free, total), strict=True))

    def missing(self) -> Mapping[str, str]:
        """Returns both without such a file system."""
        if self._statvfs is not None and self._folder.is_dir():
            return {}
        return dict.fromkeys(_NAMES, "the system has no /dev/shm: only Linux has one")

    def close(self) -> None:
        """Does nothing."""
