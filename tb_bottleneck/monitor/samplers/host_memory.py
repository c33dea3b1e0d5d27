"""The memory of the host that is in use, and that is left.

In a container the limit is that of its control group (`memory.max`), at which the kernel ends a process. Of what a
group has in use (`memory.current`), file caches that give way do not count (`inactive_file` of memory.stat; Linux
documentation, admin-guide/cgroup-v2; version 1: cgroup-v1/memory).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from tb_bottleneck.monitor.facts.cgroups import groups_of
from tb_bottleneck.monitor.samplers.sampler import Reading

_FILES = (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))
_CACHE = re.compile(r"^(?:total_)?inactive_file (\d+)$", re.MULTILINE)


class HostMemory:
    """The share of memory that is not available without swapping, and the bytes that are. Caches count as available."""

    every_s = 5.0

    def __init__(self, virtual_memory: Callable[[], Any] = psutil.virtual_memory, root: Path = Path("/")) -> None:
        self._virtual_memory = virtual_memory
        self._groups = groups_of(root, "memory")

    def read(self) -> Iterator[Reading]:
        """Yields the share in use, and what is left of which size, of the machine or of a control group with less."""
        memory = self._virtual_memory()
        total, available = float(memory.total), float(memory.available)
        pools = [(total, available), *(pool for folder in self._groups if (pool := _pool(folder, total)))]
        yield Reading("host_memory_used", max(1.0 - left / size for size, left in pools))
        size, left = min(pools, key=lambda pool: pool[1])
        yield Reading("host_memory_available", left)
        yield Reading("host_memory_total", size)

    def missing(self) -> Mapping[str, str]:
        """Returns nothing: available on every system that psutil supports."""
        return {}

    def close(self) -> None:
        """Does nothing."""


def _pool(folder: Path, machine: float) -> tuple[float, float] | None:
    """Returns the limit of a control group and the bytes below it; None without a limit below the machine's memory."""
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
