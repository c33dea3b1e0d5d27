"""Activity of the block devices: bytes read and written, and the utilisation of the busiest one.

On Linux from /proc/diskstats (Linux documentation, admin-guide/iostats), of hardware devices only: a mapped, loop or
RAM device would count the same bytes twice, or bytes of no disk. On other systems from psutil. Network file systems are
not included; their bytes are network traffic.
"""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from tb_bottleneck.monitor.samplers.rates import Clock, Rates
from tb_bottleneck.monitor.samplers.sampler import Reading

_SECTOR_BYTES = 512  # independent of the device's own sector size
_MS_PER_S = 1e3
_NAMES = ("disk_read", "disk_written", "disk_busy")
_NO_DISK = "no hardware block device was found in /proc/diskstats"
_NOT_COUNTED = "the system does not count the busy time of its disks"


class Disks:
    """Rates since the last reading."""

    every_s = 1.0

    def __init__(self, root: Path = Path("/"), clock: Clock = time.monotonic) -> None:
        self._root = root
        self._rates = Rates(clock)

    def read(self) -> Iterator[Reading]:
        """Yields nothing at the first reading."""
        rates = self._rates.per_second(self._counters())
        for name in ("disk_read", "disk_written"):
            parts = [rate for (_, kind), rate in rates.items() if kind == name]
            if parts:
                yield Reading(name, sum(parts))
        # Some systems add up the times of concurrent requests, so limit the share to 1.
        busy = [min(rate / _MS_PER_S, 1.0) for (_, kind), rate in rates.items() if kind == "disk_busy"]
        if busy:
            yield Reading("disk_busy", max(busy))

    def missing(self) -> Mapping[str, str]:
        """Returns the signals that no device has."""
        available = {kind for _, kind in self._counters()}
        because = _NOT_COUNTED if available else _NO_DISK
        return {name: because for name in _NAMES if name not in available}

    def close(self) -> None:
        """Does nothing."""

    def _counters(self) -> dict[tuple[str, str], float]:
        """Returns counters by (device, signal): bytes and milliseconds."""
        try:
            lines = (self._root / "proc/diskstats").read_text().splitlines()
        except OSError:
            return _psutil_counters()
        counters = {}
        for words in (line.split() for line in lines):
            if len(words) < 13 or not (self._root / "sys/block" / words[2] / "device").exists():
                continue
            counters[words[2], "disk_read"] = float(words[5]) * _SECTOR_BYTES
            counters[words[2], "disk_written"] = float(words[9]) * _SECTOR_BYTES
            counters[words[2], "disk_busy"] = float(words[12])
        return counters


def _psutil_counters() -> dict[tuple[str, str], float]:
    counters = {}
    for name, disk in (psutil.disk_io_counters(perdisk=True) or {}).items():
        counters[name, "disk_read"] = float(disk.read_bytes)
        counters[name, "disk_written"] = float(disk.write_bytes)
        if hasattr(disk, "busy_time"):
            counters[name, "disk_busy"] = float(disk.busy_time)
    return counters
