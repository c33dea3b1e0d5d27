"""Samplers of memory: of the host, of the training process, pinned, and shared between processes."""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from tb_bottleneck.monitor.accelerator import pinned_bytes
from tb_bottleneck.monitor.facts.cpu import groups_of
from tb_bottleneck.monitor.samplers.io import Clock, Seldom
from tb_bottleneck.monitor.samplers.processes import NO_PSS, ProcessFiles
from tb_bottleneck.monitor.samplers.sampler import Reading

_FILES = (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))
_CACHE = re.compile(r"^(?:total_)?inactive_file (\d+)$", re.MULTILINE)


class HostMemory:
    """Reads the fraction of the host's memory that is not available without swapping, and the bytes that are available.

    Caches count as available. In a container, the control group of the container limits the memory (`memory.max`): at
    this limit, the kernel ends a process. File caches that the kernel can free (`inactive_file` of memory.stat) are
    subtracted from the memory in use by the group (`memory.current`; Linux documentation, admin-guide/cgroup-v2;
    version 1: cgroup-v1/memory)."""

    every_s = 5.0

    def __init__(self, virtual_memory: Callable[[], Any] = psutil.virtual_memory, root: Path = Path("/")) -> None:
        self._virtual_memory = virtual_memory
        self._groups = groups_of(root, "memory")

    def read(self) -> Iterator[Reading]:
        """Yields the highest fraction in use (0 to 1) of all pools, and the available and total bytes of the pool with
        the least available memory.

        The pools are the machine, and each control group with a limit below the machine's memory."""
        memory = self._virtual_memory()
        total, available = float(memory.total), float(memory.available)
        pools = [(total, available), *(pool for folder in self._groups if (pool := _pool(folder, total)))]
        yield Reading("host_memory_used", max(1.0 - left / size for size, left in pools))
        size, left = min(pools, key=lambda pool: pool[1])
        yield Reading("host_memory_available", left)
        yield Reading("host_memory_total", size)

    def missing(self) -> Mapping[str, str]:
        """Returns {}: the signals are available on every system that psutil supports."""
        return {}

    def close(self) -> None:
        """Does nothing."""


def _pool(folder: Path, machine: float) -> tuple[float, float] | None:
    """Returns (limit, available bytes) of the control group in `folder`; None if its limit is not below `machine`, the
    bytes of the machine's memory."""
    for limit_file, used_file in _FILES:
        try:
            limit, used = (folder / limit_file).read_text().strip(), int((folder / used_file).read_text())
            if not limit.isdecimal() or not 0 < int(limit) < machine:
                return None
            cache = _CACHE.search((folder / "memory.stat").read_text())
        except (OSError, ValueError):
            continue
        in_use = max(used - (int(cache[1]) if cache else 0), 0)
        return float(limit), float(max(int(limit) - in_use, 0))
    return None


_NAME = "pinned_memory"


class PinnedMemory:
    """Reads the bytes of host memory that torch has pinned, in use and cached by its host allocator.

    The system can neither move pinned pages nor write them to disk. Reading the figure only reads counters of the
    allocator, and makes no device wait."""

    every_s = 5.0

    def __init__(self, pinned: Callable[[], float | None] = pinned_bytes) -> None:
        self._pinned = pinned

    def read(self) -> Iterator[Reading]:
        """Yields the pinned bytes; nothing while torch does not count them."""
        value = self._pinned()
        if value is not None:
            yield Reading(_NAME, value)

    def missing(self) -> Mapping[str, str]:
        """Returns {signal: reason} while torch does not count pinned bytes, otherwise {}."""
        if self._pinned() is not None:
            return {}
        return {_NAME: "torch does not count it: it needs a CUDA device in use, and torch 2.6 or newer"}

    def close(self) -> None:
        """Does nothing."""


_PSS = "process_pss"


class ProcessMemory:
    """Reads the memory of this process without its children: the resident size, and the proportional set size (PSS).

    A page that several processes map counts in full in the resident size of each process. In the PSS, its size is
    divided by the number of these processes. After a fork, as with a loader's workers, processes share pages, so only
    their PSS can be summed. The PSS is read rarely, because the kernel visits all pages of the process for it."""

    every_s = 1.0

    def __init__(self, root: Path = Path("/"), clock: Clock = time.monotonic) -> None:
        self._files = ProcessFiles(root, os.getpid())
        self._seldom = Seldom(clock)

    def read(self) -> Iterator[Reading]:
        """Yields the resident size in bytes and, in a few readings only, the PSS in bytes."""
        yield Reading("process_memory", float(psutil.Process().memory_info().rss))
        pss = self._seldom.read(self._files.pss_bytes)
        if pss is not None:
            yield Reading(_PSS, pss)

    def missing(self) -> Mapping[str, str]:
        """Returns {signal: reason} for the PSS if the kernel does not report it, otherwise {}."""
        return {} if self._files.has_pss() else {_PSS: NO_PSS}

    def close(self) -> None:
        """Does nothing."""


_NAMES = ("shared_memory_used", "shared_memory_total")


class SharedMemory:
    """Reads the bytes in use and the size of /dev/shm, the file system in which processes share memory.

    A loader's workers pass their batches through this file system. In containers, its size is often only 64 MB."""

    every_s = 5.0

    def __init__(self, root: Path = Path("/"), statvfs: Callable[[Path], Any] | None = None) -> None:
        self._folder = root / "dev/shm"
        self._statvfs = statvfs or getattr(os, "statvfs", None)  # Windows has none

    def read(self) -> Iterator[Reading]:
        """Yields the bytes in use and the size in bytes; nothing without such a file system."""
        if self._statvfs is None or not self._folder.is_dir():
            return
        facts = self._statvfs(self._folder)
        total, free = facts.f_blocks * facts.f_frsize, facts.f_bfree * facts.f_frsize
        if total > 0:
            yield from (Reading(name, float(value)) for name, value in zip(_NAMES, (total - free, total), strict=True))

    def missing(self) -> Mapping[str, str]:
        """Returns {signal: reason} for both signals if the system has no /dev/shm, otherwise {}."""
        if self._statvfs is not None and self._folder.is_dir():
            return {}
        return dict.fromkeys(_NAMES, "the system has no /dev/shm: only Linux has one")

    def close(self) -> None:
        """Does nothing."""
